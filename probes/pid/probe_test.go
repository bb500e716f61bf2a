package pid

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// A limit that changes is no run of tasks.
func TestPaceRestartsWithTheLimit(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]func(i int) sample{
		"pid_max is lowered":     func(i int) sample { return tasks(5000, 32768-uint64(i/5)*23_000, 127_000) },
		"another limit is lower": func(i int) sample { return tasks(5000, 32768, 127_000-uint64(i/5)*117_000) },
	} {
		p := New(probes.Host{}, somePIDs)
		start := time.Unix(1e9, 0)
		for i := range 10 {
			o := p.follow(second(i), start.Add(time.Duration(i)*time.Second))
			if o.Level != probes.OK || o.Headroom < 100*time.Millisecond {
				t.Errorf("%s, second %d: %s %s, headroom %s", name, i, o.Reason, o.Message, o.Headroom)
			}
		}
	}
}

// The nearer the threshold and the faster tasks are started, the less headroom.
func TestHeadroom(t *testing.T) {
	t.Parallel()
	start := time.Unix(1e9, 0)
	for name, test := range map[string]struct {
		used, then uint64 // a second later
		want       time.Duration
	}{
		"at rest":                  {232, 232, 2762 * time.Millisecond}, // 27,852 may be used below 85 %
		"near the threshold":       {26_852, 26_852, 100 * time.Millisecond},
		"faster than is plausible": {2852, 17_852, 667 * time.Millisecond},
		"at the threshold":         {27_851, 27_851, time.Nanosecond},
		"slower than is plausible": {7852, 7852, 2 * time.Second},
	} {
		p := New(probes.Host{}, somePIDs)
		p.follow(tasks(test.used, 32768, 127000), start)
		o := p.follow(tasks(test.then, 32768, 127000), start.Add(time.Second))
		if diff := o.Headroom - test.want; diff < -time.Millisecond || diff > time.Millisecond {
			t.Errorf("%s: %s (%s), want %s", name, o.Headroom, o.Message, test.want)
		}
	}
}

func BenchmarkPIDObserve(b *testing.B) {
	p := New(probes.Host{Proc: "/proc"}, somePIDs)
	b.ReportAllocs()
	for b.Loop() {
		p.Observe(b.Context())
	}
}
