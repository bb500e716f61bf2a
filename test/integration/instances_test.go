package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// A second agent of a Node is started by hand: it waits, says so, and writes nothing.
// When the first one is killed it takes over at once, and the taint never leaves.
func TestSecondAgentOfANodeWaits(t *testing.T) {
	t.Parallel()
	c := keeping.require(t)
	node, host := c.Register(t, "two-agents"), fixtures.NewHost(t)
	first := startAgent(t, c, node.Name, host, quick)
	host.Memory(2)
	versions := follow(t, c, node.Name)
	since := versions.wait(0, tainted(memoryKey))

	second := startAgent(t, c, node.Name, host, quick)
	address := second.WaitLog(`msg="this agent waits" listen=(\S+)`)[1]
	const want = "not ready: another agent, or a process that holds its lock, runs for this Node; this one waits until it ends"
	cluster.Eventually(t, "an answer that tells of the other agent", func() error {
		if code, body := second.GetAt(address, "/readyz"); code != http.StatusServiceUnavailable || strings.TrimSpace(body) != want {
			return fmt.Errorf("/readyz = %d %s", code, body)
		}
		return nil
	})
	if code, body := second.GetAt(address, "/healthz"); code != http.StatusOK {
		t.Errorf("/healthz = %d %s", code, body)
	}
	host.Memory(50)
	since = versions.wait(since, untainted(memoryKey))
	host.Memory(2)
	since = versions.wait(since, tainted(memoryKey))

	first.Kill()
	since = versions.wait(since, writtenBy(second.Instance()))
	becomesActive(second)
	if lost := gone(versions.since(0)); len(lost) != 1 {
		t.Errorf("the taint went %d times for one recovery; taints were\n%s", len(lost), show(versions.since(0)))
	}
	host.Memory(50)
	versions.wait(since, untainted(memoryKey))
	waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
	if writers := writersOf(versions.since(0)); strings.Join(writers, " ") != first.Instance()+" "+second.Instance() {
		t.Errorf("the record was written by %v, want %s and then %s", writers, first.Instance(), second.Instance())
	}
}

// becomesActive waits until an agent writes the Node.
func becomesActive(a *bed.Agent) {
	a.T.Helper()
	cluster.Eventually(a.T, "an agent that is ready", func() error {
		if code, body := a.Get("/readyz"); code != http.StatusOK {
			return fmt.Errorf("/readyz = %d %s", code, body)
		}
		return nil
	})
}

// writersOf lists the agents that wrote the record, in order.
func writersOf(versions []version) []string {
	var writers []string
	for _, v := range versions {
		name := recordOf(v.Node).Instance.Name
		if name != "" && (len(writers) == 0 || writers[len(writers)-1] != name) {
			writers = append(writers, name)
		}
	}
	return writers
}
