package decide_test

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// A condition that is Degraded tells why it is, also when the sample that ended
// Critical was OK.
func TestStepDownTellsWhyTheHostIsStillDegraded(t *testing.T) {
	s := newSim(withCritical(config.Default().Policy()))
	var last decide.Notice
	s.onNotice = func(n decide.Notice) { last = n }
	var shown string
	s.onWrite = func(_ *sim, c taints.Desired) {
		for _, condition := range c.Conditions {
			if condition.Type == "HostMemoryPressure" {
				shown = condition.Reason + ": " + condition.Message
			}
		}
	}
	take := func(o probes.Observation, reason, message string) {
		o.Condition, o.Reason, o.Message = probes.MemoryPressure, reason, message
		s.after(time.Second, o)
	}
	for _, name := range []probes.Condition{probes.DiskPressure, probes.PIDPressure, probes.NetworkUnavailable} {
		s.after(0, sample(name, "ok"))
	}
	for range 70 {
		take(probes.Observation{Level: probes.Critical}, "MemoryStalledFully", "4 %")
	}
	if last.To != probes.Critical || last.Reason != "MemoryStalledFully" || last.Message != "4 %" {
		t.Fatalf("not Critical: %+v", last)
	}
	take(probes.Observation{Level: probes.OK, Hysteresis: true}, "MemoryNearThreshold", "7 %")
	if last.To != probes.Degraded || last.Reason != "MemoryStalledFully" || last.Message != "4 %; now 7 %" {
		t.Errorf("Critical to Degraded: %+v", last)
	}
	if shown != "MemoryStalledFully: 7 %; bad since 00:00 UTC: 4 %; clears after 2 min of good samples" {
		t.Errorf("the Node condition says %q", shown)
	}
	for range 70 {
		take(probes.Observation{Level: probes.Critical}, "MemoryStalledFully", "3 %")
	}
	take(probes.Observation{Level: probes.Degraded}, "MemoryLow", "4.5 %")
	if last.To != probes.Degraded || last.Reason != "MemoryLow" || last.Message != "4.5 %" {
		t.Errorf("Critical to Degraded by a bad sample: %+v", last)
	}
	for range 400 {
		take(probes.Observation{Level: probes.OK}, "MemorySufficient", "50 %")
	}
	if last.To != probes.OK || last.Reason != "MemorySufficient" || last.Message != "50 %" {
		t.Errorf("Degraded to OK: %+v", last)
	}
}
