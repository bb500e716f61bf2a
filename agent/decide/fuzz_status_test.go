package decide

import (
	"strings"
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// FuzzStatus checks that people can read any record, beside any condition of the Node, and
// that no number of it is impossible.
func FuzzStatus(f *testing.F) {
	for _, text := range []string{
		"", "{}", "null", `{"version":9}`, `{"version":1,"revision":1,"owned":["a:NoSchedule"],"instance":{"name":"a"}}`,
		`{"version":1,"revision":1,"conditions":{"MemoryPressure":{"level":"Critical","since":"9999-12-31T23:59:59Z","clearsAt":"x","heldBy":"x","flaps":-1,"removals":-9,"removedBy":"` + strings.Repeat("é", 500) + `","dispute":{"Degraded":{"stage":2}}}}}`,
	} {
		f.Add(text, "HostMemoryPressure", "True", "FleetBrake")
		f.Add(text, "HostLunarPhase", "?", "")
	}
	f.Fuzz(func(t *testing.T, text, kind, status, reason string) {
		node := &taints.Node{
			Annotations: map[string]string{taints.RecordAnnotation: text},
			Conditions:  []taints.NodeCondition{{Type: kind, Status: taints.ConditionStatus(status), Reason: reason}},
		}
		read, err := ReadRecord(node)
		if err != nil && (len(read.Owned) > 0 || len(read.Conditions) > 0) {
			t.Errorf("a record that cannot be read says %+v", read)
		}
		for name, c := range read.Conditions {
			if c.Removals < 0 || c.Flaps < 0 || c.Level < probes.Unknown || c.Level > probes.Critical || len(c.RemovedBy) > 250 {
				t.Errorf("%s is %+v", name, c)
			}
		}
	})
}
