package memory

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// Measures are what the sample was judged by, in the units of metrics.
func TestMeasures(t *testing.T) {
	p := New(probetest.Healthy(), allMemory)
	probetest.Measures(t, p) // no sample yet
	for second := range 5 {
		s := ofHost(30-4*float64(second)).stalledFor(time.Duration(second)*time.Second/5, time.Duration(second)*time.Second/10)
		p.follow(s.takenAt(time.Unix(1000+int64(second), 0)))
	}
	probetest.Measures(t, p,
		probes.Measure{Name: "available", Unit: probes.Bytes, Value: 14 * gib, Degraded: 5 * gib, Clear: 7.5 * gib},
		probes.Measure{Name: "total", Unit: probes.Bytes, Value: 100 * gib},
		probes.Measure{Name: "stalled", Unit: probes.Ratio, Value: 0.2, Degraded: 0.15, Clear: 0.1},
		probes.Measure{Name: "stalled_fully", Unit: probes.Ratio, Value: 0.1, Critical: 0.4})
}

// What could not be read is not told as it was before.
func TestMeasuresVanishWithTheirFile(t *testing.T) {
	host := probetest.CopyOfHealthy(t)
	p := New(host, allMemory)
	probetest.Observe(t, p)
	if len(p.Measures(nil)) == 0 {
		t.Fatal("nothing is told of a healthy host")
	}
	probetest.Remove(t, host, "proc/meminfo")
	probetest.Observe(t, p)
	probetest.Measures(t, p)
}
