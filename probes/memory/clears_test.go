package memory

import (
	"testing"

	"github.com/taintlet/taintlet/probes"
)

// What a good sample needs is told as it is judged: just above it a sample is good,
// just below it is not.
func TestClearsIsTheThresholdThatClears(t *testing.T) {
	t.Parallel()
	for want, percent := range map[string]float64{"above 7.5 %": 7.5} {
		for above, good := range map[float64]bool{0.01: true, -0.01: false, -4: false} {
			o := someMemory.alone(ofHost(percent + above))
			if o.Clears != want || (o.Level == probes.OK && !o.Hysteresis) != good {
				t.Errorf("%.2f %%: %+v, want clears %q", percent+above, o, want)
			}
		}
	}
	byBytes := someMemory
	byBytes.AvailableBytes = 8 * gib
	if o := byBytes.alone(ofHost(4)); o.Clears != "above 12 GiB" {
		t.Errorf("by bytes: %+v", o)
	}
	if o := allMemory.alone(amounts(10*gib, 502*gib)); o.Clears != "above 19.2 GiB" {
		t.Errorf("capped: %+v", o)
	}
	if o := allMemory.judged(ofHost(9), 90, 0); o.Reason != "MemoryStalled" || o.Clears != "above 22.5 %, or stalls less" {
		t.Errorf("stalled: %+v", o)
	}
}
