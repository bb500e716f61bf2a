package pid

import (
	"testing"

	"github.com/taintlet/taintlet/probes"
)

// What a good sample needs is told as it is judged: just past it a sample is good,
// just before it is not.
func TestClearsIsTheThresholdThatClears(t *testing.T) {
	t.Parallel()
	for used, good := range map[uint64]bool{25_300: true, 25_500: false, 32_000: false} {
		o := somePIDs.judge(tasks(used, 32768, 127000))
		if o.Clears != "below 77.5 % used" || (o.Level == probes.OK && !o.Hysteresis) != good {
			t.Errorf("%d tasks: %+v", used, o)
		}
	}
	if o := somePIDs.judge(tasks(4000, 5000, 127000)); o.Clears != "above 1500 free" {
		t.Errorf("by free tasks: %+v", o)
	}
}
