package cluster

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

const (
	held             = "taintlet.dev/held"
	controllerUser   = "system:serviceaccount:kube-system:node-controller"
	controllerUserKM = "system:kube-controller-manager"
	memory           = corev1.TaintNodeMemoryPressure
	disk             = corev1.TaintNodeDiskPressure
	pid              = corev1.TaintNodePIDPressure
	network          = corev1.TaintNodeNetworkUnavailable
	notReady         = corev1.TaintNodeNotReady
	unreachable      = corev1.TaintNodeUnreachable
	unschedulable    = corev1.TaintNodeUnschedulable

	// without, in place of what the annotation holds, is a Node without it.
	without = "without"
)

// heldAndTaints is the merge patch that sets the annotation and the taints.
func heldAndTaints(value string, taints ...corev1.Taint) map[string]any {
	annotations := map[string]any{held: value}
	if value == without {
		annotations[held] = nil
	}
	return map[string]any{
		"metadata": map[string]any{"annotations": annotations},
		"spec":     map[string]any{"taints": taints},
	}
}

// The controller sees the Node at every write, and removes what it may.
func TestKeepHoldsTaintsAgainstTheController(t *testing.T) {
	c := shared.Require(t)
	SkipWithoutMutatingAdmissionPolicy(t)
	c.Keep(t)
	stamp := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	full := func(key string) corev1.Taint {
		return corev1.Taint{Key: key, Value: "by-taintlet", Effect: corev1.TaintEffectNoSchedule, TimeAdded: &stamp}
	}
	first, second := taint("example.com/first"), taint("example.com/second")
	prefer := corev1.Taint{Key: memory, Effect: corev1.TaintEffectPreferNoSchedule}
	for _, test := range []struct {
		name, held   string
		taints, want []corev1.Taint
		kubelet      corev1.NodeConditionType // that goes True and False again
	}{
		{"memory", memory, []corev1.Taint{full(memory)}, []corev1.Taint{full(memory)}, corev1.NodeMemoryPressure},
		{"disk", disk, []corev1.Taint{full(disk)}, []corev1.Taint{full(disk)}, corev1.NodeDiskPressure},
		{"pid", pid, []corev1.Taint{full(pid)}, []corev1.Taint{full(pid)}, corev1.NodePIDPressure},
		{"network", network, []corev1.Taint{full(network)}, []corev1.Taint{full(network)}, corev1.NodeNetworkUnavailable},
		{
			"all with foreign taints between", memory + ", " + disk + "," + pid + "," + network,
			[]corev1.Taint{full(memory), first, full(disk), prefer, full(pid), second, full(network)},
			[]corev1.Taint{full(memory), first, full(disk), prefer, full(pid), second, full(network)},
			corev1.NodeDiskPressure,
		},
		{
			"one held and one not", disk,
			[]corev1.Taint{full(memory), first, full(disk), second},
			[]corev1.Taint{first, full(disk), second},
			corev1.NodePIDPressure, // which adds a taint, and removes it again
		},
		{"without annotation", without, []corev1.Taint{full(memory), first}, []corev1.Taint{first}, corev1.NodeMemoryPressure},
		{
			"annotation names foreign keys", "dedicated," + notReady + "," + unreachable + "," + unschedulable,
			[]corev1.Taint{taint("dedicated"), taint(notReady), taint(unreachable), full(memory)},
			[]corev1.Taint{taint("dedicated")}, // unschedulable: see canary
			corev1.NodeMemoryPressure,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			node := c.Register(t, "keep-"+shortName(test.name))
			c.PatchNode(t, node.Name, heldAndTaints(test.held, test.taints...))
			heartbeats(t, c, node, 20)
			cycle(t, c, node, test.kubelet)
			waitTaints(t, c, node.Name, test.want)
			canary(t, c, node.Name)
			if got := c.GetNode(t, node.Name).Spec.Taints; !sameTaints(got, test.want) {
				t.Errorf("taints %v, want %v", got, test.want)
			}
		})
	}
	t.Run("kubectl removes it for good", func(t *testing.T) { kubectlRemoves(t, c) })
}

// kubectlRemoves removes a kept taint as an administrator does. The annotation
// goes on naming it, the controller goes on writing, and it stays away.
func kubectlRemoves(t *testing.T, c *Cluster) {
	node := c.Register(t, "keep-kubectl")
	c.PatchNode(t, node.Name, heldAndTaints(memory, taint(memory)))
	canary(t, c, node.Name)
	waitTaints(t, c, node.Name, []corev1.Taint{taint(memory)})
	c.RunKubectl(t, "taint", "node", node.Name, memory+":NoSchedule-")
	heartbeats(t, c, node, 5)
	canary(t, c, node.Name)
	if got := c.GetNode(t, node.Name).Spec.Taints; len(got) > 0 {
		t.Errorf("taints %v, want none", got)
	}
}

// heartbeats makes the kubelet write its status that many times; the
// controller checks the Node after each.
func heartbeats(t *testing.T, c *Cluster, node *Node, count int) {
	t.Helper()
	versions := map[string]bool{}
	for range count {
		if err := node.Heartbeat(t.Context()); err != nil {
			t.Fatal(err)
		}
		versions[c.GetNode(t, node.Name).ResourceVersion] = true
	}
	if len(versions) != count {
		t.Errorf("%d status updates made %d versions of the Node", count, len(versions))
	}
}

func shortName(name string) string {
	return string(slices.DeleteFunc([]byte(name), func(b byte) bool { return b == ' ' }))
}

// cycle takes the kubelet's condition to True and back, and waits each time
// until the controller has been there.
func cycle(t *testing.T, c *Cluster, node *Node, kind corev1.NodeConditionType) {
	t.Helper()
	for _, status := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse} {
		if err := node.SetCondition(t.Context(), kind, status); err != nil {
			t.Fatal(err)
		}
		canary(t, c, node.Name)
	}
}

// canary waits until the controller has worked on the Node as it is now. It
// deletes all of its taints that are out of place in one write, so it adds one
// that nobody holds (unschedulable, for a Node that is schedulable) and waits
// for its end: what survives that write is kept.
func canary(t *testing.T, c *Cluster, name string) {
	t.Helper()
	out := taint(unschedulable)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		nodes := c.Client().CoreV1().Nodes()
		node, err := nodes.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Spec.Taints = append(node.Spec.Taints, out)
		_, err = nodes.Update(t.Context(), node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.WaitNode(t.Context(), name, Not(HasTaint(out.Key, out.Effect))); err != nil {
		t.Fatal(err)
	}
}

func waitTaints(t *testing.T, c *Cluster, name string, want []corev1.Taint) {
	t.Helper()
	_, err := c.WaitNode(t.Context(), name, func(node *corev1.Node) bool { return sameTaints(node.Spec.Taints, want) })
	if err != nil {
		t.Fatal(err)
	}
}

func sameTaints(got, want []corev1.Taint) bool {
	return slices.EqualFunc(got, want, func(a, b corev1.Taint) bool {
		return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect && a.TimeAdded.Equal(b.TimeAdded)
	})
}
