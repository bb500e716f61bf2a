package integration

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// A person stops taintlet with kubectl annotate, for everything, for a list of
// conditions, or by a slip of the pen: nothing new is set, what recovers goes,
// and at the end of the pause what was decided meanwhile is set.
func TestPausedByAnnotation(t *testing.T) {
	t.Parallel()
	c := keeping.require(t)
	node, host := c.Register(t, "paused"), fixtures.NewHost(t)
	a := startAgent(t, c, node.Name, host, quick)
	a.WaitLog("admission policy looked up")
	annotate := func(value string) {
		t.Helper()
		c.RunKubectl(t, "annotate", "node", node.Name, "--overwrite", "taintlet.dev/paused"+value)
	}

	annotate("=true")
	c.WaitAgentEvent(t, node.Name, "TaintsPaused", "stops new taints for MemoryPressure, DiskPressure, PIDPressure, NetworkUnavailable; existing taints are still removed")
	host.Memory(2)
	waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionTrue))
	c.WaitAgentEvent(t, node.Name, "HostMemoryPressureDegraded", "no new taint while the annotation taintlet.dev/paused is on the Node")
	a.WaitMetric(`taintlet_held{by="Paused",condition="MemoryPressure",what="taint"} 1`)
	hasTaints(t, a, c, node)
	annotate("-")
	waitNode(t, c, node.Name, tainted(memoryKey))
	c.WaitAgentEvent(t, node.Name, "TaintsResumed", "the annotation taintlet.dev/paused was removed; taints are set again")

	annotate("=true")
	cluster.Eventually(t, "the Event of the second pause", func() error {
		if count := events(t, c, node.Name, "TaintsPaused"); count != 2 {
			return fmt.Errorf("%d of them", count)
		}
		return nil
	})
	host.Memory(50) // a step down goes on
	waitNode(t, c, node.Name, untainted(memoryKey))

	annotate("=DiskPressure, PIDPressure")
	c.WaitAgentEvent(t, node.Name, "TaintsPaused", "stops new taints for DiskPressure, PIDPressure;")
	host.Tasks(30000)
	waitNode(t, c, node.Name, cluster.HasCondition("HostPIDPressure", corev1.ConditionTrue))
	host.Memory(2)
	waitNode(t, c, node.Name, tainted(memoryKey))
	hasTaints(t, a, c, node, memoryKey)
}

func TestPausedByASlipOfThePen(t *testing.T) {
	t.Parallel()
	c := keeping.require(t)
	node, host := c.Register(t, "paused-slip"), fixtures.NewHost(t)
	a := startAgent(t, c, node.Name, host, quick)
	host.Memory(2)
	waitNode(t, c, node.Name, tainted(memoryKey))
	c.RunKubectl(t, "annotate", "node", node.Name, "taintlet.dev/paused=PIDPresure")
	c.WaitAgentEvent(t, node.Name, "TaintsPaused", `neither "true" nor a list of conditions: PIDPresure`)
	host.Carrier(false)
	waitNode(t, c, node.Name, cluster.HasCondition("HostNetworkUnavailable", corev1.ConditionTrue))
	hasTaints(t, a, c, node, memoryKey)

	// What a person removes during a pause stays away, and is no loss, also
	// for an agent that starts after it.
	c.RunKubectl(t, "taint", "node", node.Name, memoryKey+":NoSchedule-")
	hasTaints(t, a, c, node)
	if lost := a.Losses(); lost != 0 {
		t.Errorf("%d taints lost", lost)
	}
	a.Kill()
	a = startAgent(t, c, node.Name, host, quick)
	a.WaitLog("kind=TaintsPaused")
	hasTaints(t, a, c, node)

	c.RunKubectl(t, "annotate", "node", node.Name, "taintlet.dev/paused-")
	waitNode(t, c, node.Name, tainted(memoryKey))
	waitNode(t, c, node.Name, tainted(corev1.TaintNodeNetworkUnavailable))
	if lost := a.Losses(); lost != 0 {
		t.Errorf("%d taints lost", lost)
	}
}

// hasTaints checks that the Node has these taints and no others while the agent
// samples the memory three times and the Node is updated between the samples.
func hasTaints(t *testing.T, a *bed.Agent, c *cluster.Cluster, node *cluster.Node, keys ...string) {
	t.Helper()
	samples := func() int {
		return a.Metric(`taintlet_probe_samples_total{condition="MemoryPressure",level="Degraded"}`) +
			a.Metric(`taintlet_probe_samples_total{condition="MemoryPressure",level="OK"}`)
	}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for until := samples() + 3; samples() < until; <-tick.C {
		if err := node.Heartbeat(t.Context()); err != nil {
			t.Fatal(err)
		}
		now := c.GetNode(t, node.Name)
		if list := taintsOf(now, keys...); len(list) != 0 || len(now.Spec.Taints) != len(keys) {
			t.Fatalf("taints = %v, want %v", now.Spec.Taints, keys)
		}
	}
}
