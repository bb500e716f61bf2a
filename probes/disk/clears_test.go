package disk

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// A sample says what a good one needs, of the path that is worst.
func TestClearsIsTheThresholdThatClears(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]sample{
		"above 15 %":                answering(half("/"), nearlyFull("/data")),
		"above 7.5 % of the inodes": answering(half("/"), fewInodes("/var")),
		"":                          onMount(mountSample{mount: kubeletOn("ext4", true, true), fell: true}),
	} {
		if o := someDisk.judge(s).join(); o.Clears != want {
			t.Errorf("clears %q, want %q: %+v", o.Clears, want, o)
		}
	}
}

// What a good sample needs is told as it is judged: just past it a sample is good,
// just before it is not.
func TestASampleIsGoodJustPastWhatClears(t *testing.T) {
	t.Parallel()
	space := func(percent float64) sample {
		return answering(fileSystem{"/", 1, uint64(percent * gib), 100 * gib, 0, 0})
	}
	inodes := func(percent float64) sample {
		return answering(fileSystem{"/", 1, 90 * gib, 100 * gib, uint64(percent * 10_000), 1_000_000})
	}
	wrote := func(seconds float64) sample {
		took := time.Duration(seconds * float64(time.Second))
		return sample{writes: []writeSample{{writeAnswer: writeAnswer{took: took}, slowFor: time.Hour, Write: Write{Directory: "/data", Slow: 3 * time.Second}}}}
	}
	for name, test := range map[string]struct {
		good, near, bad sample
		clears          string
	}{
		"space":  {space(15.01), space(14.99), space(9), "above 15 %"},
		"inodes": {inodes(7.51), inodes(7.49), inodes(4), "above 7.5 % of the inodes"},
		"writes": {wrote(1.99), wrote(2.01), wrote(4), "below 2 s"},
	} {
		for what, s := range map[string]sample{"good": test.good, "near": test.near, "bad": test.bad} {
			o := someDisk.judge(s).join()
			is := map[bool]string{true: "near", false: "good"}[o.Hysteresis]
			if o.Level > probes.OK {
				is = "bad"
			}
			if is != what || o.Clears != test.clears {
				t.Errorf("%s: %s and clears %q, want %s and %q: %+v", name, is, o.Clears, what, test.clears, o)
			}
		}
	}
}
