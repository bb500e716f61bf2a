package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// pools are overrides for the pools quiet, which is left alone, batch and web.
func pools() []any {
	pool := func(name string, rules ...decide.Rule) map[string]any {
		return map[string]any{"nodeSelector": map[string]string{"example.com/pool": name}, "rules": append([]decide.Rule{}, rules...)}
	}
	rule := func(key string, effect taints.Effect) decide.Rule {
		return decide.Rule{Condition: probes.MemoryPressure, Level: probes.Degraded, Taint: decide.Taint{Key: key, Effect: effect}}
	}
	return []any{pool("quiet"), pool("batch", rule("example.com/batch", taints.NoSchedule)), pool("web", rule("example.com/web", taints.PreferNoSchedule))}
}

// A label of the Node moves it to another override, and so to another taint, while the agent
// runs and while it does not. A pool that is left alone has no taint, and loses the one that it
// had.
func TestOverrideFollowsTheLabels(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	node, host := c.Register(t, "overridden"), fixtures.NewHost(t)
	label := func(pool string) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"metadata": {"labels": {"example.com/pool": %q}}}`, pool)
		if _, err := c.Client().CoreV1().Nodes().Patch(t.Context(), node.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	file := quick + "overrides: " + string(marshal(t, pools())) + "\n"
	batch, web := corev1.Taint{Key: "example.com/batch", Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: "example.com/web", Effect: corev1.TaintEffectPreferNoSchedule}
	wait := func(only ...corev1.Taint) {
		t.Helper()
		waitNode(t, c, node.Name, func(node *corev1.Node) bool {
			for _, taint := range []corev1.Taint{batch, web} {
				if cluster.HasTaint(taint.Key, taint.Effect)(node) != (len(only) > 0 && only[0] == taint) {
					return false
				}
			}
			return true
		})
	}

	label("batch")
	a := startAgent(t, c, node.Name, host, file)
	host.Memory(2)
	wait(batch)
	label("web")
	wait(web)
	c.WaitAgentEvent(t, node.Name, "OverrideChanged", "match overrides[2] {example.com/pool=web}, before they matched overrides[1] {example.com/pool=batch}: rules[MemoryPressure Degraded] example.com/batch:NoSchedule → example.com/web:PreferNoSchedule")
	a.Kill()
	label("quiet")
	startAgent(t, c, node.Name, host, file)
	wait()
	label("batch")
	wait(batch)
}

// A first week, with a host under pressure in two pools: all observed, one pool enforced, one
// more Node by its label, and all of it stopped by an annotation and by the configuration.
func TestFirstWeek(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	page, err := os.ReadFile("../../docs/first-week.md")
	if err != nil {
		t.Fatal(err)
	}
	var days []string
	for _, block := range strings.Split(string(page), "```yaml\nconfig:\n")[1:] {
		day, _, _ := strings.Cut(block, "```")
		days = append(days, quick+strings.ReplaceAll("\n"+day, "\n  ", "\n"))
	}
	isTainted := cluster.HasTaint("taintlet.dev/memory-pressure", corev1.TaintEffectNoSchedule)
	var names []string
	var agents []*bed.Agent
	for _, name := range []string{"week-canary", "week-other"} {
		host := fixtures.NewHost(t)
		host.Memory(2)
		names = append(names, c.Register(t, name).Name)
		agents = append(agents, startAgent(t, c, name, host, days[0]))
	}
	c.RunKubectl(t, "label", "node", names[0], "example.com/pool=canary")
	for _, name := range names {
		c.WaitAgentEvent(t, name, "HostMemoryPressureDegraded", "mode Observe: would set ")
	}
	for _, a := range agents {
		a.Reconfigure(days[1])
	}
	waitNode(t, c, names[0], isTainted)
	c.WaitAgentEvent(t, names[1], "ConfigurationReloaded", "")
	if isTainted(waitNode(t, c, names[1], func(*corev1.Node) bool { return true })) {
		t.Error("a Node of another pool is tainted")
	}
	c.RunKubectl(t, "label", "node", names[1], "example.com/pool=canary")
	waitNode(t, c, names[1], isTainted)
	c.RunKubectl(t, "annotate", "node", names[1], "taintlet.dev/mode=Observe")
	waitNode(t, c, names[1], cluster.Not(isTainted))
	for _, a := range agents {
		a.Reconfigure(days[2])
	}
	c.RunKubectl(t, "annotate", "node", names[1], "taintlet.dev/mode-")
	waitNode(t, c, names[1], isTainted)
	agents[0].Reconfigure(days[0])
	waitNode(t, c, names[0], cluster.Not(isTainted))
}
