package pid

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/probetest"
	"github.com/taintlet/taintlet/probes/trend"
)

func TestMessages(t *testing.T) { //nolint:paralleltest // it may write its file
	thresholds := somePIDs
	thresholds.RunningOutWithin, thresholds.RunningOutUsedPercent, thresholds.CriticalUsedPercent = 30*time.Second, 50, 98
	judge := func(used, pidMax uint64) probes.Observation {
		return thresholds.judge(tasks(used, pidMax, 127000), trend.Slope{})
	}
	p, start, running := New(probes.Host{}, thresholds), time.Unix(1e9, 0), probes.Observation{}
	for second := range uint64(10) {
		running = p.follow(tasks(16000+second*500, 32768, 127000), start.Add(time.Duration(second)*time.Second))
	}
	probetest.Golden(t, *update,
		[]string{"PIDsSufficient", "PIDsNearThreshold", "PIDsLow", "PIDsRunningOut", "PIDsExhausted"},
		judge(820, 32768), judge(26000, 32768), judge(28500, 32768), judge(4300, 5000), running, judge(32400, 32768),
	)
}
