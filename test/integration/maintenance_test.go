package integration

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// While a condition of the Node says that it is under maintenance, nothing new is set,
// peers are told, and people see that no person has paused the Node. What recovers goes, and
// at the end what was decided meanwhile is set. An agent that starts meanwhile does the same.
func TestMaintenanceByACondition(t *testing.T) {
	t.Parallel()
	c := keeping.require(t)
	node, host := c.Register(t, "maintained"), fixtures.NewHost(t)
	a := startAgent(t, c, node.Name, host, quick)
	waitNode(t, c, node.Name, cluster.HasCondition("HostNetworkUnavailable", corev1.ConditionFalse))
	host.Carrier(false)
	waitNode(t, c, node.Name, tainted(corev1.TaintNodeNetworkUnavailable))
	tellsPeers(a, false)

	setCondition(t, node, "MaintenanceInProgress", corev1.ConditionTrue)
	c.WaitAgentEvent(t, node.Name, "TaintsPaused", "the Node is under maintenance, because its condition MaintenanceInProgress is True: no new taints")
	tellsPeers(a, true)
	host.Memory(2)
	held := waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionTrue))
	if text := cluster.Condition(held, "HostMemoryPressure").Message; !strings.Contains(text, "; no taint while the Node is under maintenance; ") {
		t.Error(text)
	}
	c.WaitAgentEvent(t, node.Name, "HostMemoryPressureDegraded", "no new taint while the Node is under maintenance")
	a.WaitMetric(`taintlet_held{by="Maintenance",condition="MemoryPressure",what="taint"} 1`)
	hasTaints(t, a, c, node, corev1.TaintNodeNetworkUnavailable)

	a.Kill()
	a = startAgent(t, c, node.Name, host, quick)
	tellsPeers(a, true)
	hasTaints(t, a, c, node, corev1.TaintNodeNetworkUnavailable)
	host.Carrier(true)
	waitNode(t, c, node.Name, untainted(corev1.TaintNodeNetworkUnavailable))

	setCondition(t, node, "MaintenanceInProgress", corev1.ConditionFalse)
	waitNode(t, c, node.Name, tainted(memoryKey))
	c.WaitAgentEvent(t, node.Name, "TaintsResumed", "the Node is no longer under maintenance by its condition MaintenanceInProgress; taints are set again")
	tellsPeers(a, false)
	if lost := a.Losses(); lost != 0 {
		t.Errorf("%d taints lost", lost)
	}
}

// tellsPeers waits until an agent tells its peers whether its Node is under maintenance.
func tellsPeers(a *bed.Agent, isMaintained bool) {
	a.T.Helper()
	cluster.Eventually(a.T, "what peers are told of the maintenance", func() error {
		if _, page := a.Get("/peer"); strings.Contains(page, `"maintenance":true`) != isMaintained {
			return errors.New(page)
		}
		return nil
	})
}

// A plan stops nothing. A drain does, until the Node takes pods again: `kubectl uncordon` may
// leave Drained as it is. The API server takes these conditions without a feature gate.
func TestMaintenanceOfADrainedNode(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	node, host := c.Register(t, "drained"), fixtures.NewHost(t)
	a := startAgent(t, c, node.Name, host, quick)
	waitNode(t, c, node.Name, cluster.HasCondition("HostNetworkUnavailable", corev1.ConditionFalse))
	setCondition(t, node, "MaintenancePlanned", corev1.ConditionTrue)
	host.Memory(2)
	waitNode(t, c, node.Name, tainted(memoryStandIn))

	c.RunKubectl(t, "cordon", node.Name)
	setCondition(t, node, "Drained", corev1.ConditionTrue)
	c.WaitAgentEvent(t, node.Name, "TaintsPaused", "the Node is under maintenance, because its condition Drained is True: no new taints")
	waitNode(t, c, node.Name, tainted(corev1.TaintNodeUnschedulable))
	host.Carrier(false)
	waitNode(t, c, node.Name, cluster.HasCondition("HostNetworkUnavailable", corev1.ConditionTrue))
	hasTaints(t, a, c, node, memoryStandIn, corev1.TaintNodeUnschedulable)

	c.RunKubectl(t, "uncordon", node.Name)
	waitNode(t, c, node.Name, tainted("taintlet.dev/network-unavailable"))
	c.WaitAgentEvent(t, node.Name, "TaintsResumed", "the Node is no longer under maintenance by its condition Drained; taints are set again")
}

func setCondition(t *testing.T, node *cluster.Node, kind corev1.NodeConditionType, status corev1.ConditionStatus) {
	t.Helper()
	if err := node.SetCondition(t.Context(), kind, status); err != nil {
		t.Fatal(err)
	}
}
