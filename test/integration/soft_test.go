package integration

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// Before MemoryPressure is Degraded, a soft taint has pods prefer other Nodes: they still
// come when there is none. It outlives a restart, stays while the condition is Degraded, is set
// again when somebody removed it, and goes with the recovery.
func TestSoftTaintIsAvoidedNotForbidden(t *testing.T) {
	t.Parallel()
	c, host := plain.require(t), fixtures.NewHost(t)
	near, well := c.Register(t, "soft-near"), c.Register(t, "soft-well")
	soft := corev1.Taint{Key: "status-taint.cluster-autoscaler.kubernetes.io/memory-pressure-early", Effect: corev1.TaintEffectPreferNoSchedule}
	hasSoft := cluster.HasTaint(soft.Key, soft.Effect)
	file := strings.Replace(quick, "memory: {", "memory: {earlyPercent: 10, ", 1) + `
writeBudget: {interval: 1s}
keyPrefix: status-taint.cluster-autoscaler.kubernetes.io
`
	a := startAgent(t, c, near.Name, host, file)
	waitNode(t, c, near.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
	host.Memory(9) // below earlyPercent, and above the threshold that clears Degraded, 7.5 %
	tainted := waitNode(t, c, near.Name, hasSoft)
	wantTaints(t, tainted, soft)
	if condition := cluster.Condition(tainted, "HostMemoryPressure"); condition.Status != corev1.ConditionFalse {
		t.Errorf("HostMemoryPressure is %s: %s", condition.Status, condition.Message)
	}
	c.WaitAgentEvent(t, near.Name, "SoftTaintSet", "beyond the early threshold: early taint status-taint.cluster-autoscaler.kubernetes.io/memory-pressure-early:PreferNoSchedule")
	waitNode(t, c, near.Name, func(node *corev1.Node) bool {
		condition := cluster.Condition(node, "HostMemoryPressure")
		return condition != nil && strings.HasSuffix(condition.Message, "; early taint status-taint.cluster-autoscaler.kubernetes.io/memory-pressure-early:PreferNoSchedule")
	})

	isAvoided(t, c, near.Name, well.Name)

	a.Kill()
	a = startAgent(t, c, near.Name, host, file)
	a.WaitMetric(`taintlet_taint_desired{condition="MemoryPressure",effect="PreferNoSchedule",key="status-taint.cluster-autoscaler.kubernetes.io/memory-pressure-early",via="direct"} 1`)
	wantTaints(t, c.GetNode(t, near.Name), soft, dedicated)
	c.SetTaints(t, near.Name, dedicated)
	waitNode(t, c, near.Name, hasSoft)
	waitLosses(a, 1)

	host.Memory(2)
	hard := waitNode(t, c, near.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionTrue))
	if !hasSoft(hard) {
		t.Errorf("taints = %v", hard.Spec.Taints)
	}
	host.Memory(50)
	wantTaints(t, waitNode(t, c, near.Name, cluster.Not(hasSoft)), dedicated)
	c.WaitAgentEvent(t, near.Name, "SoftTaintCleared", "far from the early threshold: removes early taint status-taint.cluster-autoscaler.kubernetes.io/memory-pressure-early:PreferNoSchedule")
}
