package security

import (
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
// ask for: no key of others, no eviction, and nothing that others have set goes.
func TestRogueConfigurationSetsNoOtherTaint(t *testing.T) {
	c := denying.Require(t)
	for name, rules := range map[string]string{
		"a key that the chart lacks": "{condition: MemoryPressure, level: Degraded, taint: {key: example.com/poison, effect: NoSchedule}}",
		"a taint of others":          "{condition: MemoryPressure, level: Degraded, taint: {key: dedicated, value: mine, effect: NoSchedule}}",
	} {
		t.Run(name, func(t *testing.T) {
			node := strings.ReplaceAll(name, " ", "-")
			c.Register(t, node)
			dedicated := corev1.Taint{Key: "dedicated", Value: "group", Effect: corev1.TaintEffectNoSchedule}
			c.SetTaints(t, node, dedicated)
			host := fixtures.NewHost(t)
			a := bed.StartAgent(t, program.Path(t), append(host.Flags(), "--kubeconfig="+cluster.Kubeconfig(t, bed.AgentOf(t, c, node)),
				"--config="+configFile(t, configuration+"rules:\n- "+rules+"\n"), "--node-name="+node, "--listen=127.0.0.1:0")...)
			host.Memory(2)
			a.WaitLog(`taints of others|no rule asks for`) // the policy's refusal
			if code, body := a.Get("/readyz"); code == http.StatusOK {
				t.Errorf("/readyz = %d %s", code, body)
			}
			taints := c.GetNode(t, node).Spec.Taints
			if len(taints) != 1 || taints[0].Key != dedicated.Key || taints[0].Value != dedicated.Value {
				t.Errorf("taints: %v", taints)
			}
		})
	}
}
