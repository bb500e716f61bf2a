package integration

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/chart"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fakehost"
)

const (
	// steadyFor is how long an agent with nothing to do is watched.
	steadyFor = 2 * time.Minute
	// firstHeartbeat is when the first heartbeat falls due at the earliest, 5 min
	// ± 10 % after the start: the conditions are refreshed, and the admission
	// policy is asked for.
	firstHeartbeat = 270 * time.Second
	// kubeletWrites is how often a kubelet writes the status of a Node on which
	// something changes all the time.
	kubeletWrites = 10 * time.Second
)

// On a healthy Node an agent with the default configuration asks nothing of the
// API server but its one watch, whatever the kubelet writes there. The audit
// log tells the agents of the nodes apart.
func TestSteadyStateMakesNoRequests(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	node, host := c.Register(t, "steady"), fakehost.New(t)
	started := time.Now()
	startAgent(t, c, node.Name, host, "")
	for _, trouble := range troubles() {
		waitNode(t, c, node.Name, cluster.HasCondition(trouble.condition, corev1.ConditionFalse))
	}

	settled := time.Now()
	end := time.After(steadyFor)
	beat := time.NewTicker(kubeletWrites)
	defer beat.Stop()
	for watching := true; watching; {
		select {
		case <-beat.C:
			if err := node.Heartbeat(t.Context()); err != nil {
				t.Fatal(err)
			}
		case <-end:
			watching = false
		}
	}

	before, after := map[string]int{}, map[string]int{}
	requests, err := c.Requests(ofAgents)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, request := range requests {
		if seen[request.AuditID] || !slices.Equal(request.User.Extra[chart.NodeNameExtra], []string{node.Name}) {
			continue
		}
		seen[request.AuditID] = true
		if request.RequestReceivedTimestamp.Before(settled) {
			before[request.Verb+" "+request.Resource()]++
		} else {
			after[request.Verb+" "+request.Resource()]++
		}
	}
	t.Logf("requests until it had settled: %v; in the %s after that: %v", before, steadyFor, after)
	if before["watch nodes"] == 0 || before["patch nodes/status"] == 0 {
		t.Error("the audit log lacks what the agent must have done at its start")
	}
	allowed := map[string]int{"watch nodes": 1} // each watch has an end
	if time.Since(started) > firstHeartbeat {
		allowed["patch nodes/status"], allowed["get mutatingadmissionpolicybindings"] = 1, 1
	}
	for what, count := range after {
		if count > allowed[what] {
			t.Errorf("an agent with nothing to do asked to %s %d times", what, count)
		}
	}
}
