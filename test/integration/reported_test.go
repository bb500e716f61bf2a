package integration

import (
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
)

// reporter writes conditions of a Node as node-problem-detector does: a strategic merge patch
// of the status, whose heartbeat moves each time.
type reporter struct {
	t    *testing.T
	c    *cluster.Cluster
	node string
	at   time.Time
}

func (r *reporter) report(conditions ...corev1.NodeCondition) {
	r.t.Helper()
	r.at = r.at.Add(time.Second)
	for i := range conditions {
		conditions[i].LastHeartbeatTime, conditions[i].LastTransitionTime = metav1.NewTime(r.at), metav1.NewTime(r.at)
	}
	patch := marshal(r.t, map[string]any{"status": map[string]any{"conditions": conditions}})
	if _, err := r.c.Client().CoreV1().Nodes().Patch(r.t.Context(), r.node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		r.t.Fatal(err)
	}
}

func is(kind, status, reason string) corev1.NodeCondition {
	return corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: corev1.ConditionStatus(status), Reason: reason, Message: reason + " says its reporter"}
}

// well are the conditions of the example as their reporters write them on a good host.
func well() []corev1.NodeCondition {
	return []corev1.NodeCondition{
		is("KernelDeadlock", "False", "KernelHasNoDeadlock"), is("ReadonlyFilesystem", "False", "FilesystemIsNotReadOnly"), is("XfsShutdown", "False", "XfsHasNotShutDown"),
		is("KernelReady", "True", "KernelIsReady"), is("StorageReady", "True", "DiskIsReady"), is("AcceleratedHardwareReady", "True", "NvidiaAcceleratedHardwareIsReady"),
	}
}

// reportedExample is the example of docs/conditions-of-others.md: as a file, with soon in place
// of each entry's end, and as values of the chart.
func reportedExample(t *testing.T, soon string) (file string, values map[string]any) {
	t.Helper()
	page, err := os.ReadFile("../../docs/conditions-of-others.md")
	if err != nil {
		t.Fatal(err)
	}
	_, file, _ = strings.Cut(string(page), "```yaml\n")
	file, _, _ = strings.Cut(file, "```")
	var parsed map[string]any
	if err := yaml.Unmarshal([]byte(file), &parsed); err != nil {
		t.Fatal(err)
	}
	slots := parsed["eviction"]
	for _, field := range []string{"apiVersion", "kind", "eviction"} {
		delete(parsed, field)
	}
	lines := strings.Split(file, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "- {type: ") {
			line, _, _ = strings.Cut(line, "}")
			lines[i] = line + soon
		}
	}
	return strings.TrimPrefix(strings.Join(lines[2:], "\n"), bed.ConfigHeader), map[string]any{"config": parsed, "evict": slots}
}

// The example of docs/conditions-of-others.md sets the taints that it says, under the policies
// that the chart makes of it: for the reasons that the rules name, an eviction with its slot, and
// one that somebody removes.
func TestConditionsOfOthers(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	const namespace = "reported"
	const soon = ", period: 1s, debounce: {clearAfter: 2s, criticalAfter: 2s}}"
	text, values := reportedExample(t, soon)
	createNamespace(t, c, namespace)
	bed.InstallRules(t.Context(), t, c, bed.ChartFolder, namespace, values)
	node, host := c.Register(t, "reported"), fixtures.NewHost(t)
	f := &fleet{t: t, c: c, namespace: namespace}
	r := &reporter{t: t, c: c, node: node.Name, at: time.Unix(0, 0)}
	r.report(well()...)
	start := func() *bed.Agent {
		return f.startAs(identityIn(t, c, namespace, node.Name), node.Name, host, text)
	}
	a := start()
	wait := func(holds func(*corev1.Node) bool) *corev1.Node { t.Helper(); return waitNode(t, c, node.Name, holds) }
	shows := func(kind string, status corev1.ConditionStatus, reason string) func(*corev1.Node) bool {
		return func(node *corev1.Node) bool {
			shown := cluster.Condition(node, corev1.NodeConditionType(kind))
			return shown != nil && shown.Status == status && shown.Reason == reason
		}
	}
	// What stood there when the agent started proves nothing.
	wait(shows("HostKernelDeadlock", corev1.ConditionUnknown, "HeartbeatNotSeen"))
	r.report(well()...)
	wait(shows("HostKernelDeadlock", corev1.ConditionFalse, "KernelHasNoDeadlock"))

	r.report(is("AcceleratedHardwareReady", "False", "NvidiaXID13Error"))
	wait(cluster.HasTaint("example.com/gpu-slow", corev1.TaintEffectPreferNoSchedule))
	r.report(is("AcceleratedHardwareReady", "False", "NvidiaXID79Error"))
	both := wait(cluster.HasTaint("example.com/gpu", corev1.TaintEffectNoSchedule))
	if !cluster.HasTaint("example.com/gpu-slow", corev1.TaintEffectPreferNoSchedule)(both) {
		t.Errorf("the first reason's taint has gone: %v", both.Spec.Taints)
	}
	c.WaitAgentEvent(t, node.Name, "HostAcceleratedHardwareReadyDegraded", "AcceleratedHardwareReady is False: NvidiaXID13Error says its reporter; sets taint example.com/gpu-slow:PreferNoSchedule")
	r.report(well()...)
	wait(func(n *corev1.Node) bool { return len(n.Spec.Taints) == 0 })

	pod := boundPod(t, c, "reported-evicted", node.Name, tolerating())
	r.report(is("ReadonlyFilesystem", "True", "FilesystemIsReadOnly"))
	wait(cluster.HasTaint("example.com/read-only", corev1.TaintEffectNoExecute))
	waitPod(t, c, pod, isDeleted)
	if f.holder() == "" {
		t.Error("the eviction has no slot")
	}
	r.report(well()...)
	wait(func(n *corev1.Node) bool { return len(n.Spec.Taints) == 0 })

	r.report(is("KernelDeadlock", "True", "DockerHung"))
	locked := cluster.HasTaint("example.com/kernel-deadlock", corev1.TaintEffectNoSchedule)
	wait(func(n *corev1.Node) bool {
		return locked(n) && shows("HostKernelDeadlock", corev1.ConditionTrue, "DockerHung")(n)
	})
	a.WaitMetric(`taintlet_condition_level{condition="KernelDeadlock",level="Degraded"} 1`)
	a.Kill()
	before := recordOf(wait(locked)).Instance.Name
	a = start()
	wait(func(n *corev1.Node) bool { return recordOf(n).Instance.Name != before })
	r.report(well()...)
	wait(func(n *corev1.Node) bool {
		return locked(n) && shows("HostKernelDeadlock", corev1.ConditionFalse, "KernelHasNoDeadlock")(n)
	})
	if said := cluster.Condition(wait(locked), "HostKernelDeadlock").Message; !strings.HasSuffix(said, "the taint of an earlier fault stays until an operator removes it") {
		t.Error(said)
	}
	a.Kill()
	c.SetTaints(t, node.Name)
	start() // the removal while no agent ran counts
	c.WaitAgentEvent(t, node.Name, "TaintAcknowledged", "which acknowledges the earlier fault")
	if n := wait(cluster.Not(locked)); len(n.Spec.Taints) != 0 {
		t.Errorf("taints %v", n.Spec.Taints)
	}
}

// Twenty types at the same time fit into the record, the Node's conditions and what the
// policies allow.
func TestTwentyConditionsOfOthers(t *testing.T) {
	t.Parallel()
	c := plain.require(t)
	const namespace = "twenty"
	var types, rules []any
	var bad, good []corev1.NodeCondition
	text := "conditions:\n"
	for i := range 20 {
		kind := "Type" + strings.Repeat("X", 40) + string(rune('A'+i))
		taint := map[string]any{"key": "example.com/" + kind, "effect": "NoSchedule"}
		types = append(types, map[string]any{"type": kind})
		rules = append(rules, map[string]any{"condition": kind, "level": "Degraded", "taint": taint})
		bad, good = append(bad, is(kind, "True", strings.Repeat("R", 64))), append(good, is(kind, "False", "Fine"))
		text += "- {type: " + kind + ", period: 1s, debounce: {clearAfter: 1s}}\n"
	}
	text += "rules: " + string(marshal(t, rules)) + "\nwriteBudget: {interval: 1s}\n"
	createNamespace(t, c, namespace)
	bed.InstallRules(t.Context(), t, c, bed.ChartFolder, namespace, map[string]any{"config": map[string]any{"conditions": types, "rules": rules}})
	node, host := c.Register(t, "twenty"), fixtures.NewHost(t)
	r := &reporter{t: t, c: c, node: node.Name, at: time.Unix(0, 0)}
	r.report(good...)
	startAgentAs(t, identityIn(t, c, namespace, node.Name), node.Name, host, text, "--namespace="+namespace)
	waitNode(t, c, node.Name, cluster.HasCondition("HostMemoryPressure", corev1.ConditionFalse))
	r.report(bad...)
	tainted := waitNode(t, c, node.Name, func(n *corev1.Node) bool { return len(n.Spec.Taints) == 20 })
	if record := recordOf(tainted); len(record.Owned) != 20 {
		t.Errorf("the record owns %d", len(record.Owned))
	}
	r.report(good...)
	waitNode(t, c, node.Name, func(n *corev1.Node) bool { return len(n.Spec.Taints) == 0 })
}
