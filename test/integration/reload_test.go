package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// The configuration is changed under a running agent: what is valid comes into
// force, what is not is refused and told, and the agent never restarts.
func TestConfigurationIsReloaded(t *testing.T) {
	t.Parallel()
	c, key := pressured(t, corev1.TaintNodeMemoryPressure)
	node, host := c.Register(t, "reloading"), fixtures.NewHost(t)
	a := startAgent(t, c, node.Name, host, quick)
	host.Memory(2)
	waitNode(t, c, node.Name, cluster.HasTaint(key, corev1.TaintEffectNoSchedule))
	first := a.WaitLog(`msg="taintlet starts".* config=(\S+)`)[1]

	const custom = "example.com/tired"
	hash := a.Reconfigure(quick + "rules:\n- {condition: MemoryPressure, level: Degraded, taint: {key: " + custom + ", effect: PreferNoSchedule}}\n")
	moved := waitNode(t, c, node.Name, cluster.HasTaint(custom, corev1.TaintEffectPreferNoSchedule))
	if cluster.HasTaint(key, corev1.TaintEffectNoSchedule)(moved) {
		t.Errorf("the taint of the old rule is there as well: %v", moved.Spec.Taints)
	}
	a.WaitLog(`msg="configuration in force" hash=` + hash + ` before=` + first)
	c.WaitAgentEvent(t, node.Name, "ConfigurationReloaded", hash)
	a.WaitMetric(`taintlet_config_info{hash="` + hash + `"} 1`)
	waitNode(t, c, node.Name, func(node *corev1.Node) bool {
		status, err := decide.ReadRecord(apiserver.NodeOf(node))
		return err == nil && status.Config == hash
	})

	a.Reconfigure("memory: {availablePercent: 500}\n")
	a.WaitLog(`msg="configuration refused; the earlier one stays in force" inForce=` + hash)
	c.WaitAgentEvent(t, node.Name, "ConfigurationRefused", "memory.availablePercent: Invalid value: 500: must be 0 to 100")
	a.WaitMetric("taintlet_config_refused 1")
	if after := waitNode(t, c, node.Name, func(*corev1.Node) bool { return true }); !cluster.HasTaint(custom, corev1.TaintEffectPreferNoSchedule)(after) {
		t.Error("a refused configuration cost the taint")
	}

	a.Reconfigure(quick + "rules: []\n") // the rule is dropped
	waitNode(t, c, node.Name, cluster.Not(cluster.HasTaint(custom, corev1.TaintEffectPreferNoSchedule)))
	a.WaitMetric("taintlet_config_refused 0")
}

// A file that is spoilt and mended again, byte for byte, is no longer refused.
func TestMendedConfigurationIsNoLongerRefused(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	node, host := c.Register(t, "mending"), fixtures.NewHost(t)
	a := startAgent(t, c, node.Name, host, quick)
	a.WaitLog(`msg="taintlet starts"`)
	a.Reconfigure("nonsense: 1\n")
	a.WaitMetric("taintlet_config_refused 1")
	a.Reconfigure(quick)
	a.WaitMetric("taintlet_config_refused 0")
}
