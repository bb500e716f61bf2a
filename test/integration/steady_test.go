package integration

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
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
	node, host := c.Register(t, "steady"), fixtures.NewHost(t)
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

	before, after := requestsBeside(t, c, node.Name, settled)
	t.Logf("requests until it had settled: %v; in the %s after that: %v", before, steadyFor, after)
	if before["watch nodes"] == 0 || before["patch nodes/status"] == 0 {
		t.Error("the audit log lacks what the agent must have done at its start")
	}
	allowed := map[string]int{"watch nodes": 1} // each watch has an end
	if time.Since(started) > firstHeartbeat {
		allowed["patch nodes/status"], allowed[policyLookup] = 1, lookups(t)
	}
	for what, count := range after {
		if count > allowed[what] {
			t.Errorf("an agent with nothing to do asked to %s %d times", what, count)
		}
	}
}

// requestsBeside counts what the agent of a node asked for before a time and since.
func requestsBeside(t *testing.T, c *cluster.Cluster, node string, when time.Time) (before, since map[string]int) {
	t.Helper()
	before, since = map[string]int{}, map[string]int{}
	requests, err := c.Requests(ofAgents)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{} // each watch has an end
	for _, request := range requests {
		if seen[request.AuditID] || !slices.Equal(request.User.Extra[bed.NodeNameExtra], []string{node}) {
			continue
		}
		seen[request.AuditID] = true
		if request.RequestReceivedTimestamp.Before(when) {
			before[request.Verb+" "+request.Resource()]++
		} else {
			since[request.Verb+" "+request.Resource()]++
		}
	}
	return before, since
}

// policyLookup is how an agent learns whether the keep policy is there.
const policyLookup = "get mutatingadmissionpolicybindings"

// lookups is how many requests that takes: a server without v1 is asked for v1beta1 too.
func lookups(t *testing.T) int {
	if cluster.HasMutatingAdmissionPolicy(t) {
		return 1
	}
	return 2
}

// secondWrite is how long a write is waited for that must not come: longer than the
// writer joins changes for.
const secondWrite = 2 * time.Second

// A host that becomes bad costs one patch of the Node, one of its conditions and an
// Event. That the watch shows the taint before the conditions are written is no
// reason to write them again.
func TestALevelIsWrittenOnce(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	for round := range 3 { // the watch is to win the race in one of them at least
		node, host := c.Register(t, fmt.Sprint("once-", round)), fixtures.NewHost(t)
		startAgent(t, c, node.Name, host, quick)
		waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
		settled := time.Now()
		host.Memory(2)
		waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionTrue))
		c.WaitAgentEvent(t, node.Name, "HostMemoryPressureDegraded", "taint")
		time.Sleep(secondWrite)
		_, since := requestsBeside(t, c, node.Name, settled)
		want := map[string]int{"patch nodes": 1, "patch nodes/status": 1, "create events": 1}
		if since[policyLookup] == lookups(t) { // of its start, or of its own time
			want[policyLookup] = lookups(t)
		}
		if !maps.Equal(since, want) {
			t.Errorf("the agent asked for %v, want %v", since, want)
		}
	}
}

// A restart costs a Node one write: the record, which says whose it is now. Conditions
// that say the same already wait for their heartbeat.
func TestARestartIsWrittenOnce(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	for _, name := range []string{"well", "bad"} {
		node, host := c.Register(t, "restarted-"+name), fixtures.NewHost(t)
		status := corev1.ConditionFalse
		before := startAgent(t, c, node.Name, host, quick)
		waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", status))
		if name == "bad" {
			status = corev1.ConditionTrue
			host.Memory(2)
			waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", status))
		}
		time.Sleep(secondWrite) // what is joined is written
		before.Terminate()
		restarted := time.Now()
		after := startAgent(t, c, node.Name, host, quick)
		cluster.Eventually(t, "the restarted agent to be ready", func() error {
			if code, page := after.Get("/readyz"); code != http.StatusOK {
				return fmt.Errorf("%d %s", code, page)
			}
			return nil
		})
		time.Sleep(secondWrite)
		_, since := requestsBeside(t, c, node.Name, restarted)
		writes := map[string]int{}
		for _, verb := range []string{"patch nodes", "patch nodes/status", "create events"} {
			if since[verb] > 0 {
				writes[verb] = since[verb]
			}
		}
		if since["watch nodes"] != 1 || !maps.Equal(writes, map[string]int{"patch nodes": 1}) {
			t.Errorf("%s: the restarted agent asked for %v, want one patch of the record", name, since)
		}
	}
}
