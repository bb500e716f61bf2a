package disk

import "testing"

// A sample says what a good one needs, of the path that is worst.
func TestClearsIsTheThresholdThatClears(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]sample{
		"above 15 % on /data":               answering(half("/"), nearlyFull("/data")),
		"above 7.5 % of the inodes on /var": answering(half("/"), fewInodes("/var")),
		"":                                  onMount(mountSample{path: "/", mount: kubeletOn("ext4", true, true), fell: true}),
	} {
		if o := someDisk.judge(s).join(); o.Clears != want {
			t.Errorf("clears %q, want %q: %+v", o.Clears, want, o)
		}
	}
}
