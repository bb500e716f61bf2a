package pid

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/probetest"
)

// Tasks that go fast taint while there is still time, but only when many are
// gone already: a host that starts a hundred pods is no fork bomb.
func TestPIDRunningOut(t *testing.T) {
	t.Parallel()
	thresholds := somePIDs
	thresholds.RunningOutWithin, thresholds.RunningOutUsedPercent = 30*time.Second, 50
	for _, test := range []struct {
		name             string
		from, perSecond  uint64
		level            probes.Level
		hysteresis       bool
		reason, contains string
	}{
		{"fork bomb", 16000, 500, probes.Degraded, false, "PIDsRunningOut", "; none left in 24 s, threshold 30 s"},
		{"slower, easier threshold", 16000, 350, probes.OK, true, "PIDsNearThreshold", ""},
		{"slow", 16000, 10, probes.OK, false, "PIDsSufficient", ""},
		{"fast, few used", 1000, 1400, probes.OK, true, "PIDsNearThreshold", ""},
		{"getting better", 20000, 0, probes.OK, false, "PIDsSufficient", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := New(probes.Host{}, thresholds)
			start, last := time.Unix(1e9, 0), probes.Observation{}
			for second := range uint64(10) {
				last = p.follow(tasks(test.from+second*test.perSecond, 32768, 127000), start.Add(time.Duration(second)*time.Second))
			}
			probetest.Check(t, last, test.level, test.reason, test.contains)
			if last.Hysteresis != test.hysteresis {
				t.Errorf("hysteresis %t", last.Hysteresis)
			}
		})
	}
}

func BenchmarkPIDObserve(b *testing.B) {
	p := New(probes.Host{Proc: "/proc"}, somePIDs)
	b.ReportAllocs()
	for b.Loop() {
		p.Observe(b.Context())
	}
}
