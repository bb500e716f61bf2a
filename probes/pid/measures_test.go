package pid

import (
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// Measures are what the sample was judged by.
func TestMeasures(t *testing.T) {
	thresholds := Thresholds{UsedPercent: 85, CriticalUsedPercent: 95, ClearFactor: 1.5}
	p := New(probes.Host{}, thresholds)
	probetest.Measures(t, p) // no sample yet
	p.known, p.newest = true, tasks(14_000, 20_000, 127_000)
	probetest.Measures(t, p,
		probes.Measure{Name: "free_tasks", Unit: probes.Items, Value: 6000, Degraded: 3001, Critical: 1001, Clear: 4501.5},
		probes.Measure{Name: "task_limit", Unit: probes.Items, Value: 20000})
}

// What could not be read is not told as it was before.
func TestMeasuresVanishWithTheirFile(t *testing.T) {
	host := probetest.CopyOfHealthy(t)
	p := New(host, somePIDs)
	probetest.Observe(t, p)
	if len(p.Measures(nil)) == 0 {
		t.Fatal("nothing is told of a healthy host")
	}
	probetest.Remove(t, host, "proc/loadavg")
	probetest.Observe(t, p)
	probetest.Measures(t, p)
}
