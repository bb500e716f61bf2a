package pid

import (
	"flag"
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

var update = flag.Bool("update", false, "write what the probe says into testdata: hosts.txt of each recorded host, messages.golden of each reason")

// defaultPIDs are the agent's defaults.
var defaultPIDs = Thresholds{UsedPercent: 85, CriticalUsedPercent: 95, ClearFactor: 1.5}

func TestHosts(t *testing.T) {
	t.Parallel()
	probetest.Hosts(t, *update, func(_ string, h probes.Host) []string {
		return []string{probetest.Text(probetest.Observe(t, New(h, defaultPIDs)))}
	})
}

func TestEdgesTouchTheirConditionAlone(t *testing.T) {
	t.Parallel()
	probetest.Edges(t, func(h probes.Host) probes.Observation { return New(h, defaultPIDs).Observe(t.Context()) },
		map[string]string{
			"proc/loadavg":                "LoadavgGarbled",
			"proc/sys/kernel/pid_max":     "PIDMaxGarbled",
			"proc/sys/kernel/threads-max": "ThreadsMaxGarbled",
		}, nil)
}
