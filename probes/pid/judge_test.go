package pid

import (
	"math/rand/v2"
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

var somePIDs = Thresholds{UsedPercent: 85, ClearFactor: 1.5}

// tasks is a sample of a host with these two limits.
func tasks(used, pidMax, threadsMax uint64) sample {
	if threadsMax < pidMax {
		return sample{used: used, limit: threadsMax, setting: "kernel.threads-max"}
	}
	return sample{used: used, limit: pidMax, setting: "kernel.pid_max"}
}

func TestPIDJudge(t *testing.T) {
	t.Parallel()
	early := somePIDs
	early.EarlyPercent = 30
	for _, test := range []struct {
		name            string
		t               Thresholds
		s               sample
		level           probes.Level
		reason, message string
		severity        int
	}{
		{"plenty", somePIDs, tasks(1234, 32768, 127000), probes.OK, "PIDsSufficient",
			"used 1234 of 32768 tasks (3.7 %, 31534 free), limit kernel.pid_max, threshold 85 %", 0},
		{"threads-max is lower", somePIDs, tasks(28000, 4194304, 32000), probes.Degraded, "PIDsLow",
			"used 28000 of 32000 tasks (87.5 %, 4000 free), limit kernel.threads-max, threshold 85 %", 58},
		{"a task below the threshold", somePIDs, tasks(84_999, 100_000, 100_000), probes.OK, "PIDsNearThreshold", "(84.9 %", 50},
		{"at the threshold", somePIDs, tasks(85_000, 100_000, 100_000), probes.Degraded, "PIDsLow", "(85.0 %", 50},
		{"above the clear threshold", somePIDs, tasks(77_499, 100_000, 100_000), probes.OK, "PIDsNearThreshold", "", 0},
		{"at the clear threshold", somePIDs, tasks(77_498, 100_000, 100_000), probes.OK, "PIDsSufficient", "", 0},
		{"early, at ease", early, tasks(20_000, 100_000, 100_000), probes.OK, "PIDsSufficient", "", 17},
		{"early", early, tasks(30_000, 100_000, 100_000), probes.OK, "PIDsSufficient", "", 25},
		{"early, and near", early, tasks(84_999, 100_000, 100_000), probes.OK, "PIDsNearThreshold", "", 49},
		{"free tasks decide", somePIDs, tasks(4001, 5000, 5000), probes.Degraded, "PIDsLow", "threshold 1000 free", 50},
		{"free tasks at the threshold", somePIDs, tasks(4000, 5000, 5000), probes.OK, "PIDsNearThreshold", "", 50},
		{"free tasks above it", somePIDs, tasks(3000, 5000, 5000), probes.OK, "PIDsSufficient", "", 0},
		{"a tiny limit, little used", somePIDs, tasks(100, 400, 400), probes.OK, "PIDsSufficient", "threshold 100 free", 0},
		{"a tiny limit, used up", somePIDs, tasks(301, 400, 400), probes.Degraded, "PIDsLow", "threshold 100 free", 50},
		{"all used", somePIDs, tasks(400, 400, 400), probes.Degraded, "PIDsLow", "0 free", 100},
		{"more used than there are", somePIDs, tasks(500, 400, 400), probes.Degraded, "PIDsLow", "(125.0 %, 0 free)", 100},
		{"100 percent, with enough free tasks", Thresholds{UsedPercent: 100}, tasks(99_000, 100_000, 100_000), probes.OK, "PIDsSufficient", "threshold 1000 free", 50},
		{"100 percent, with a task less", Thresholds{UsedPercent: 100}, tasks(99_001, 100_000, 100_000), probes.Degraded, "PIDsLow", "threshold 1000 free", 50},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := test.t.judge(test.s)
			probetest.Check(t, o, test.level, test.reason, test.message)
			if o.Severity != test.severity {
				t.Errorf("severity %d, want %d", o.Severity, test.severity)
			}
		})
	}
}

func TestPIDIsMonotone(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	for range 10 {
		limit := 301 + random.Uint64N(1<<22)
		thresholds := Thresholds{
			UsedPercent: 60 + 40*random.Float64(), ClearFactor: 1 + random.Float64(),
		}
		probetest.Monotone(t, func(free uint64) probes.Observation {
			return thresholds.judge(tasks(limit-free, limit, limit+1))
		}, limit)
	}
}

func TestPIDCritical(t *testing.T) {
	t.Parallel()
	thresholds := somePIDs
	thresholds.CriticalUsedPercent = 95
	for used, level := range map[uint64]probes.Level{94_999: probes.Degraded, 95_000: probes.Critical, 100_000: probes.Critical} {
		if o := thresholds.judge(tasks(used, 100_000, 100_000)); o.Level != level {
			t.Errorf("%d used: %s", used, o.Level)
		}
	}
}
