package security

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

// Whoever may write the ConfigMap chooses the rules of all agents. The policies do not follow
// the ConfigMap but the values of the chart, so such rules set no taint that the chart does not
// ask for. An agent whose rule has the pair of a taint of others leaves that taint as it is.
func TestRogueConfigurationSetsNoOtherTaint(t *testing.T) {
	c := denying.Require(t)
	for name, rogue := range map[string]struct {
		taint     string
		isRefused bool // by the policy; else the agent leaves a pair alone that was there before it
	}{
		"a key that the chart lacks": {"{key: example.com/poison, effect: NoSchedule}", true},
		"a taint of others":          {"{key: dedicated, value: mine, effect: NoSchedule}", false},
	} {
		t.Run(name, func(t *testing.T) {
			node := strings.ReplaceAll(name, " ", "-")
			c.Register(t, node)
			dedicated := corev1.Taint{Key: "dedicated", Value: "group", Effect: corev1.TaintEffectNoSchedule}
			c.SetTaints(t, node, dedicated)
			host := fixtures.NewHost(t)
			rules := "rules:\n- {condition: MemoryPressure, level: Degraded, taint: " + rogue.taint + "}\n"
			a := bed.StartAgent(t, program.Path(t), agentFlags(t, c, node, host, configuration+rules)...)
			host.Memory(2)
			a.WaitLog(`msg="condition changed" condition=MemoryPressure .*to=Degraded`)
			if rogue.isRefused {
				a.WaitLog(`taints of others .* stay as and where they are: example.com/poison:NoSchedule`)
				cluster.Eventually(t, "/readyz that fails", func() error { // the log tells of it first
					if code, body := a.Get("/readyz"); code == http.StatusOK {
						return fmt.Errorf("%d %s", code, body)
					}
					return nil
				})
			} else if _, err := c.WaitNode(t.Context(), node, cluster.HasCondition("HostMemoryPressure", corev1.ConditionTrue)); err != nil {
				t.Error(err)
			}
			taints := c.GetNode(t, node).Spec.Taints
			if len(taints) != 1 || taints[0].Key != dedicated.Key || taints[0].Value != dedicated.Value {
				t.Errorf("taints: %v", taints)
			}
		})
	}
}
