package cluster

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
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
)

// applyKeep applies the shipped policy for the length of the test and returns
// when the API server obeys it.
func applyKeep(t *testing.T, c *Cluster) {
	t.Helper()
	if err := c.InstallKeep(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		policies := c.Client().AdmissionregistrationV1()
		if err := policies.MutatingAdmissionPolicyBindings().Delete(context.Background(), "taintlet-keep", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if err := policies.MutatingAdmissionPolicies().Delete(context.Background(), "taintlet-keep", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// createNode makes a Node without a kubelet for the length of the test.
func createNode(t *testing.T, c *Cluster, node *corev1.Node) {
	t.Helper()
	if _, err := c.Client().CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Client().CoreV1().Nodes().Delete(context.Background(), node.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// dryRun returns the Node as it would be if the user set the taints.
func dryRun(t *testing.T, c *Cluster, user, name string, taints []corev1.Taint) *corev1.Node {
	t.Helper()
	config := c.Admin()
	// The system:masters may write Nodes, which not all of the users may. The
	// policy looks at the name.
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"taints": taints}})
	if err != nil {
		t.Fatal(err)
	}
	node, err := kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().
		Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// The controller sees the Node at every write, and removes what it may.
func TestKeepHoldsTaintsAgainstTheController(t *testing.T) {
	c := shared.Require(t)
	applyKeep(t, c)
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
			corev1.NodePIDPressure, // which adds a taint, and takes it off again
		},
		{"without annotation", "", []corev1.Taint{full(memory), first}, []corev1.Taint{first}, corev1.NodeMemoryPressure},
		{"annotation names a foreign key", "dedicated", []corev1.Taint{taint("dedicated"), full(memory)}, []corev1.Taint{taint("dedicated")}, corev1.NodeMemoryPressure},
	} {
		t.Run(test.name, func(t *testing.T) {
			node := register(t, c, "keep-"+shortName(test.name))
			change := map[string]any{"spec": map[string]any{"taints": test.taints}}
			if test.held != "" {
				change["metadata"] = map[string]any{"annotations": map[string]string{held: test.held}}
			}
			patchNode(t, c, node.Name, change)
			heartbeats(t, c, node, 20)
			cycle(t, c, node, test.kubelet)
			waitTaints(t, c, node.Name, test.want)
			canary(t, c, node.Name)
			if got := taintsOf(t, c, node.Name); !sameTaints(got, test.want) {
				t.Errorf("taints %v, want %v", got, test.want)
			}
		})
	}
}

// heartbeats makes the kubelet write its status that many times; the
// controller looks at the Node after each.
func heartbeats(t *testing.T, c *Cluster, node *Node, count int) {
	t.Helper()
	versions := map[string]bool{}
	for range count {
		if err := node.Heartbeat(t.Context()); err != nil {
			t.Fatal(err)
		}
		current, err := c.Client().CoreV1().Nodes().Get(t.Context(), node.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		versions[current.ResourceVersion] = true
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
	out := taint(corev1.TaintNodeUnschedulable)
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

func taintsOf(t *testing.T, c *Cluster, name string) []corev1.Taint {
	t.Helper()
	node, err := c.Client().CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node.Spec.Taints
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

// What the policy does to single writes, by whom it is written.
func TestKeepChangesOnlyTheControllersWrites(t *testing.T) {
	// No controller manager, which would write to the Nodes in the meantime.
	c := New(t, Options{WithoutControllerManager: true, WithoutScheduler: true})
	applyKeep(t, c)
	first, second, added := taint("example.com/first"), taint("example.com/second"), taint("example.com/added")
	revalued := corev1.Taint{Key: "example.com/first", Value: "new", Effect: corev1.TaintEffectNoSchedule}
	noExecute := corev1.Taint{Key: memory, Effect: corev1.TaintEffectNoExecute}
	for _, test := range []struct {
		name, user, held    string
		before, write, want []corev1.Taint
	}{
		{"the controller removes a held taint", controllerUser, memory, []corev1.Taint{first, taint(memory), second}, []corev1.Taint{first, second}, []corev1.Taint{first, taint(memory), second}},
		{"under its other name", controllerUserKM, memory, []corev1.Taint{taint(memory)}, nil, []corev1.Taint{taint(memory)}},
		{"it adds, revalues and removes", controllerUser, memory, []corev1.Taint{first, taint(memory), second}, []corev1.Taint{added, revalued}, []corev1.Taint{revalued, taint(memory), added}},
		{"it reorders, and nothing held is missing", controllerUser, memory, []corev1.Taint{taint(memory), first, second}, []corev1.Taint{second, taint(memory), first}, []corev1.Taint{second, taint(memory), first}},
		{"another effect of a held key", controllerUser, memory, []corev1.Taint{noExecute, first}, []corev1.Taint{first}, []corev1.Taint{first}},
		{"a key that is no pressure", controllerUser, "dedicated," + corev1.TaintNodeUnschedulable, []corev1.Taint{taint("dedicated"), taint(corev1.TaintNodeUnschedulable)}, nil, nil},
		{"a key that was not there", controllerUser, disk, []corev1.Taint{first}, nil, nil},
		{"an empty annotation", controllerUser, "", []corev1.Taint{taint(memory)}, nil, nil},
		{"an annotation with nonsense", controllerUser, ",, ,no key at all!," + memory + ",", []corev1.Taint{taint(memory)}, nil, []corev1.Taint{taint(memory)}},
		{"an administrator removes a held taint", "alice", memory, []corev1.Taint{first, taint(memory)}, []corev1.Taint{first}, []corev1.Taint{first}},
		{"another controller removes a held taint", "system:serviceaccount:kube-system:daemon-set-controller", memory, []corev1.Taint{taint(memory)}, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			name := "writes-of-keep"
			createNode(t, c, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{held: test.held}},
				Spec:       corev1.NodeSpec{Taints: test.before},
			})
			if got := dryRun(t, c, test.user, name, test.write).Spec.Taints; !sameTaints(got, test.want) {
				t.Errorf("taints %v, want %v", got, test.want)
			}
		})
	}
}
