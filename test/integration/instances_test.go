package integration

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// A second agent is started by hand while the first one runs: the first says
// who has taken its place, once, and writes nothing more. The second is killed
// and a third one takes its place at once.
func TestNewestAgentIsActive(t *testing.T) {
	t.Parallel()
	c := keeping.require(t)
	node, host := c.Register(t, "overtaken"), fixtures.NewHost(t)
	first := startAgent(t, c, node.Name, host, quick)
	host.Memory(2)
	versions := follow(t, c, node.Name)
	versions.wait(0, tainted(memoryKey))
	waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionTrue))

	second := startAgent(t, c, node.Name, host, quick)
	since := versions.wait(0, writtenBy(second.Instance()))
	becomesStandby(first, second)
	c.WaitAgentEvent(t, node.Name, "AgentStandby", "another agent, "+second.Instance()+", started later than this one, "+first.Instance()+",")
	writes := writesOf(first)
	host.Memory(50)
	since = versions.wait(since, untainted(memoryKey))
	host.Memory(2)
	since = versions.wait(since, tainted(memoryKey))
	second.Kill()

	third := startAgent(t, c, node.Name, host, quick)
	since = versions.wait(since, writtenBy(third.Instance()))
	becomesActive(third)
	host.Memory(50)
	versions.wait(since, untainted(memoryKey))
	waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))

	if now := writesOf(first); now != writes {
		t.Errorf("the first agent wrote %d times after it had become standby", now-writes)
	}
	writers := writersOf(versions.since(0))
	if got, want := strings.Join(writers, " "), strings.Join([]string{first.Instance(), second.Instance(), third.Instance()}, " "); got != want {
		t.Errorf("the record was written by %s, want %s", got, want)
	}
	if lost := gone(versions.since(0)); len(lost) != 2 {
		t.Errorf("the taint went %d times for two recoveries; taints were\n%s", len(lost), show(versions.since(0)))
	}
	if count := events(t, c, node.Name, "AgentStandby"); count != 1 {
		t.Errorf("%d Events AgentStandby", count)
	}
	becomesStandby(first, third) // whoever asks is sent to an agent that is alive
}

// Two agents on a healthy Node find no record. Whichever of them sees trouble
// first, and writes, the one that started last is active in the end, and the
// taint never leaves.
func TestTwoAgentsWithoutARecord(t *testing.T) {
	t.Parallel()
	for name, sees := range map[string]struct{ older, newer bool }{
		"two-agents-both": {older: true, newer: true}, "two-agents-older": {older: true}, "two-agents-newer": {newer: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withoutARecord(t, name, sees.older, sees.newer)
		})
	}
}

// withoutARecord gives each agent a host of its own, so that one of them can
// see trouble before the other does. Their configuration is the built-in one, of which no
// record tells.
func withoutARecord(t *testing.T, name string, olderSees, newerSees bool) {
	t.Helper()
	c := keeping.require(t)
	node := c.Register(t, name)
	start := func() (*bed.Agent, *fixtures.Host) {
		host := fixtures.NewHost(t)
		command := agentCommand(t, identity(t, c, node.Name), node.Name, host, "")
		command.Args = slices.DeleteFunc(command.Args, func(arg string) bool { return strings.HasPrefix(arg, "--config=") })
		a := bed.StartAgentCommand(t, command)
		a.WaitLog("admission policy looked up")
		return a, host
	}
	older, olderHost := start()
	older.WaitMetric(`taintlet_node_writes_total{result="ok"} 1`) // the conditions
	newer, newerHost := start()                                   // which say what this one would
	for _, a := range []*bed.Agent{older, newer} {
		becomesActive(a)
	}
	versions := follow(t, c, node.Name)
	versions.wait(0, func(node *corev1.Node) bool { return node.Annotations["taintlet.dev/record"] == "" })

	if olderSees {
		olderHost.Memory(2)
	}
	if newerSees {
		newerHost.Memory(2)
	}
	versions.wait(0, tainted(memoryKey))
	olderHost.Memory(2)
	newerHost.Memory(2)
	becomesStandby(older, newer)
	becomesActive(newer)
	staysThroughUpdates(t, c, node, memoryKey, 3*time.Second)
	if flaps := gone(versions.since(0)); len(flaps) != 0 {
		t.Errorf("the taint went %d times; taints were\n%s", len(flaps), show(versions.since(0)))
	}
	if writers := writersOf(versions.since(0)); len(writers) > 2 || writers[len(writers)-1] != newer.Instance() {
		t.Errorf("the record was written by %v, want %s to be the last", writers, newer.Instance())
	}
}

// A standby agent becomes active again when the newer one has
// been silent for three heartbeats, and not before.
func TestSilentAgentIsReplaced(t *testing.T) {
	t.Parallel()
	c := keeping.require(t)
	node, host := c.Register(t, "silent"), fixtures.NewHost(t)
	const config = quick + "heartbeat: 10s\n"
	first := startHasty(t, c, node.Name, host, config)
	host.Memory(2)
	versions := follow(t, c, node.Name)
	versions.wait(0, tainted(memoryKey))
	second := startHasty(t, c, node.Name, host, config)
	since := versions.wait(0, writtenBy(second.Instance()))
	becomesStandby(first, second)

	second.Kill()
	silent := time.Now()
	host.Memory(50)
	since = versions.wait(since, untainted(memoryKey))
	took := versions.since(since)[0].at.Sub(silent)
	t.Logf("the taint went %s after the newer agent was killed", took)
	if took < 25*time.Second {
		t.Errorf("the older agent did not wait for three heartbeats, only for %s", took)
	}
	c.WaitAgentEvent(t, node.Name, "AgentActive", "the agent "+second.Instance()+" has been silent for 30 s; this one, "+first.Instance()+", is active for this Node again")
	becomesActive(first)
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

// becomesStandby waits until an agent leaves the Node to another one, and
// checks that whoever asks it for its health is told why.
func becomesStandby(a, other *bed.Agent) {
	a.T.Helper()
	a.WaitLog("kind=AgentStandby")
	cluster.Eventually(a.T, "an answer that names the other agent", func() error {
		code, body := a.Get("/readyz")
		if code == http.StatusServiceUnavailable && strings.Contains(body, "another agent, "+other.Instance()+", is active for this Node") {
			return nil
		}
		return fmt.Errorf("/readyz = %d %s", code, body)
	})
	if code, body := a.Get("/healthz"); code != http.StatusOK {
		a.T.Errorf("/healthz = %d %s", code, body)
	}
}

// writesOf is how often the agent wrote its Node, or tried to.
func writesOf(a *bed.Agent) int {
	a.T.Helper()
	return a.Metric(`taintlet_node_writes_total{result="ok"}`) + a.Metric(`taintlet_node_writes_total{result="error"}`)
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
