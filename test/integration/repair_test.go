package integration

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// HostRepairNeeded is False at the start, True after a fault has been there for repair.after,
// and False again after it. A killed agent leaves it, and the next one keeps it, with the
// time of its status. Two agents never write it twice.
func TestRepairNeeded(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	node, host := c.Register(t, "repair"), fixtures.NewHost(t)
	repair := func(status corev1.ConditionStatus, reason string) func(*corev1.Node) bool {
		return func(node *corev1.Node) bool {
			shown := cluster.Condition(node, decide.RepairType)
			return shown != nil && shown.Status == status && shown.Reason == reason
		}
	}
	h := follow(t, c, node.Name)
	a := startAgent(t, c, node.Name, host, quick+"repair: {after: 4s}\n")
	at := h.wait(0, repair(corev1.ConditionFalse, describe.ReasonNoRepair))
	broken := time.Now()
	host.Carrier(false)
	begin := h.wait(at, cluster.HasCondition("HostNetworkUnavailable", corev1.ConditionTrue))
	at = h.wait(begin, repair(corev1.ConditionTrue, "RouteLost"))
	a.WaitMetric(`taintlet_repair_needed{condition="NetworkUnavailable"} 1`)
	if late := h.since(at)[0].at.Sub(broken); late < 4*time.Second {
		t.Errorf("True %s after the fault", late)
	}
	before := recordOf(h.since(at)[0].Node).Instance.Name
	a.Kill()
	a = startAgent(t, c, node.Name, host, quick)
	after := h.wait(at, func(node *corev1.Node) bool { return recordOf(node).Instance.Name != before })
	a.WaitMetric(`taintlet_repair_needed{condition="NetworkUnavailable"} 1`)
	host.Carrier(true)
	end := h.wait(after, repair(corev1.ConditionFalse, describe.ReasonCooldown))
	for _, version := range h.since(0)[at:end] {
		if !repair(corev1.ConditionTrue, "RouteLost")(version.Node) {
			t.Errorf("between its first and its last: %+v", cluster.Condition(version.Node, decide.RepairType))
		}
	}
}
