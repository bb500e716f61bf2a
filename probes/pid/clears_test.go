package pid

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
)

// What a good sample needs is told as it is judged: just past it a sample is good,
// just before it is not.
func TestClearsIsTheThresholdThatClears(t *testing.T) {
	t.Parallel()
	for used, good := range map[uint64]bool{25_300: true, 25_500: false, 32_000: false} {
		o := somePIDs.judge(tasks(used, 32768, 127000), trend.Slope{})
		if o.Clears != "below 77.5 % used" || (o.Level == probes.OK && !o.Hysteresis) != good {
			t.Errorf("%d tasks: %+v", used, o)
		}
	}
	if o := somePIDs.judge(tasks(4000, 5000, 127000), trend.Slope{}); o.Clears != "above 1500 free" {
		t.Errorf("by free tasks: %+v", o)
	}
	runsOut := somePIDs
	runsOut.RunningOutWithin, runsOut.RunningOutUsedPercent = 30*time.Second, 50
	for reason, perSecond := range map[string]uint64{"PIDsRunningOut": 500, "PIDsNearThreshold": 350} {
		p, o := New(probes.Host{}, runsOut), probes.Observation{}
		for second := range uint64(22) {
			o = p.follow(tasks(10000+second*perSecond, 32768, 127000), time.Unix(int64(second), 0)) //nolint:gosec // below 22
		}
		if o.Reason != reason || o.Clears != "" {
			t.Errorf("it is the pace, and no number: %+v", o)
		}
	}
}
