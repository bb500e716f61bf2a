package fleet

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/process"
)

// WaitKnown waits until all agents, and that many, report a healthy network.
func (s *Scene) WaitKnown(t *testing.T, count int) {
	t.Helper()
	if !s.Records.Wait(5*time.Minute, func(states map[string]State) bool {
		well := 0
		for _, state := range states {
			if state.Status == corev1.ConditionFalse && !state.Tainted {
				well++
			}
		}
		return well == count && len(states) == count
	}) {
		t.Fatalf("not all networks are well:\n%s", Show(s.Records.Since(time.Now().Add(-2*time.Minute))))
	}
}

// CheckChanges checks that nobody but those who may was tainted since then, and that all
// that was written where nobody should be is the suspicion.
func (s *Scene) CheckChanges(t *testing.T, began time.Time, may []string) {
	t.Helper()
	for _, c := range s.Records.Since(began) {
		if (c.Tainted || c.Status == corev1.ConditionTrue) && !slices.Contains(may, c.Node) {
			t.Errorf("tainted or accused: %s", c)
		}
	}
	requests, err := s.Cluster.Requests(":" + bed.Account)
	if err != nil {
		t.Fatal(err)
	}
	writes := map[string]int{}
	for _, r := range requests {
		if r.RequestReceivedTimestamp.Before(began) || r.Verb != "patch" && r.Verb != "create" && r.Verb != "update" {
			continue
		}
		node := strings.Join(r.User.Extra[bed.NodeNameExtra], "")
		writes[r.Resource()]++
		if r.Resource() == "nodes" && !slices.Contains(may, node) && strings.Contains(string(r.RequestObject), "network-unavailable") {
			t.Errorf("%s writes a taint: %.300s", node, r.RequestObject)
		}
	}
	t.Logf("writes of all agents: %v", writes)
}

// Memory returns a number of /proc/PID/status of the agent, such as VmRSS, in KiB.
func (a *Agent) Memory(t *testing.T, field string) int {
	t.Helper()
	kibibytes, err := process.Memory(a.Process.PID(), field)
	if err != nil {
		t.Fatal(err)
	}
	return kibibytes
}

// Series returns the value of a time series of the agent's metrics.
func (a *Agent) Series(t *testing.T, name string) int {
	t.Helper()
	text, err := a.Get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	return int(bed.Metric(text, name))
}
