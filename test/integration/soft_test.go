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
	soft := corev1.Taint{Key: "example.com/memory-elevated", Effect: corev1.TaintEffectPreferNoSchedule}
	hasSoft := cluster.HasTaint(soft.Key, soft.Effect)
	file := quick + `
softRules:
- {condition: MemoryPressure, severity: 20, taint: {key: example.com/memory-elevated, effect: PreferNoSchedule}}
writeBudget: {interval: 1s}
`
	a := startAgent(t, c, near.Name, host, file)
	waitNode(t, c, near.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
	host.Memory(6) // between the threshold that sets, 5 %, and the one that clears, 7.5 %
	tainted := waitNode(t, c, near.Name, hasSoft)
	wantTaints(t, tainted, soft)
	if condition := cluster.Condition(tainted, "HostMemoryPressure"); condition.Status != corev1.ConditionFalse {
		t.Errorf("HostMemoryPressure is %s: %s", condition.Status, condition.Message)
	}
	c.WaitAgentEvent(t, near.Name, "SoftTaintSet", "severity 20 or more: soft taint example.com/memory-elevated:PreferNoSchedule")
	waitNode(t, c, near.Name, func(node *corev1.Node) bool {
		condition := cluster.Condition(node, "HostMemoryPressure")
		return condition != nil && strings.HasSuffix(condition.Message, "; soft taint example.com/memory-elevated:PreferNoSchedule")
	})

	isAvoided(t, c, near.Name, well.Name)

	a.Kill()
	a = startAgent(t, c, near.Name, host, file)
	a.WaitMetric(`taintlet_taint_desired{condition="MemoryPressure",effect="PreferNoSchedule",key="example.com/memory-elevated",via="direct"} 1`)
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
	c.WaitAgentEvent(t, near.Name, "SoftTaintCleared", "severity below 15: no more soft taint example.com/memory-elevated:PreferNoSchedule")
}
