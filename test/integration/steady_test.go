package integration

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/cluster"
)

const (
	// steadyFor is how long an agent with nothing to do is watched.
	steadyFor = 2 * time.Minute
	// firstHeartbeat is when the first heartbeat falls due at the earliest, 5 min
	// ± 10 % after the start: the conditions are refreshed, and the admission
	// policy is looked for.
	firstHeartbeat = 270 * time.Second
	// kubeletWrites is how often a kubelet writes the status of a Node on which
	// something changes all the time.
	kubeletWrites = 10 * time.Second
)

// On a healthy Node an agent with the default configuration asks nothing of the
// API server but its one watch, whatever the kubelet writes there. The agent
// has a user of its own, so that the audit log shows all that it does.
func TestSteadyStateMakesNoRequests(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	const user = "system:serviceaccount:taintlet-system:steady"
	if err := plain.grantTo(t.Context(), "steady", user, agentRules()); err != nil {
		t.Fatal(err)
	}
	identity, err := c.Config(user)
	if err != nil {
		t.Fatal(err)
	}
	node, host := register(t, c, "steady"), newFakeHost(t)
	started := time.Now()
	startAgentAs(t, identity, node.Name, host, "")
	for _, trouble := range troubles() {
		waitNode(t, c, node.Name, hasCondition(trouble.condition, corev1.ConditionFalse))
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
	for _, request := range requestsBy(t, c, user) {
		if request.RequestReceivedTimestamp.Before(settled) {
			before[request.String()]++
		} else {
			after[request.String()]++
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

// request is what matters here of an audit.k8s.io/v1 Event.
type request struct {
	AuditID   string
	Verb      string
	User      struct{ Username string }
	ObjectRef struct{ Resource, Subresource string }

	RequestReceivedTimestamp time.Time
}

// String is verb and resource, such as "patch nodes/status".
func (r request) String() string {
	return strings.TrimSuffix(r.Verb+" "+r.ObjectRef.Resource+"/"+r.ObjectRef.Subresource, "/")
}

// requestsBy returns the user's requests by the API server's audit log, which
// has an entry for the start of a watch and one for its end.
func requestsBy(t *testing.T, c *cluster.Cluster, user string) map[string]request {
	t.Helper()
	// The API server begins a new file after 100 MB and renames the old one.
	files, err := filepath.Glob(strings.TrimSuffix(c.AuditLogPath(), ".log") + "*.log")
	if err != nil {
		t.Fatal(err)
	}
	var log []byte
	for _, file := range files {
		part, err := os.ReadFile(file) //nolint:gosec // our own file
		if err != nil {
			t.Fatal(err)
		}
		log = append(log, part...)
	}
	found := map[string]request{}
	for line := range bytes.Lines(log) {
		if !bytes.Contains(line, []byte(user)) || !bytes.HasSuffix(line, []byte("\n")) {
			continue // somebody else's, or not yet written to its end
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("audit log: %v: %s", err, line)
		}
		if r.User.Username == user {
			found[r.AuditID] = r
		}
	}
	return found
}
