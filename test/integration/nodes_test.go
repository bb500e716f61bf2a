package integration

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/taintlet/taintlet/test/cluster"
)

func waitNode(t *testing.T, c *cluster.Cluster, name string, holds func(*corev1.Node) bool) *corev1.Node {
	t.Helper()
	node, err := c.WaitNode(t.Context(), name, holds)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func waitPod(t *testing.T, c *cluster.Cluster, name string, holds func(*corev1.Pod) bool) {
	t.Helper()
	if _, err := c.WaitPod(t.Context(), "default", name, holds); err != nil {
		t.Fatal(err)
	}
}

// createPod makes a BestEffort pod that only the node can take; it tolerates
// the key, if any.
func createPod(t *testing.T, c *cluster.Cluster, name, node, key string) string {
	t.Helper()
	var tolerations []corev1.Toleration
	if key != "" {
		tolerations = append(tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
	return c.CreatePod(t, cluster.NewPod(name, node, tolerations...))
}

// watchNode returns every version of the node from now on.
func watchNode(ctx context.Context, t *testing.T, c *cluster.Cluster, name string) <-chan *corev1.Node {
	t.Helper()
	watcher, err := c.Client().CoreV1().Nodes().Watch(ctx, byName("metadata.name", name))
	if err != nil {
		t.Fatal(err)
	}
	versions := make(chan *corev1.Node, 1000)
	go func() {
		defer close(versions)
		for event := range watcher.ResultChan() {
			if node, ok := event.Object.(*corev1.Node); ok && event.Type != watch.Deleted {
				versions <- node
			}
		}
	}()
	return versions
}

func byName(field, name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(field, name).String()}
}

func tainted(key string) func(*corev1.Node) bool {
	return cluster.HasTaint(key, corev1.TaintEffectNoSchedule)
}

func untainted(key string) func(*corev1.Node) bool { return cluster.Not(tainted(key)) }

// taintsOf lists the taints of a Node, less those with the keys.
func taintsOf(node *corev1.Node, less ...string) []string {
	var list []string
	for _, taint := range node.Spec.Taints {
		if !slices.Contains(less, taint.Key) {
			list = append(list, taint.ToString())
		}
	}
	return list
}

// record is what these tests read of the annotation taintlet.dev/record.
type record struct {
	Revision uint64
	Instance struct{ Name string }
	Owned    []string
}

// recordOf returns the record of a Node; an empty one when it cannot be read.
func recordOf(node *corev1.Node) record {
	var r record
	if err := json.Unmarshal([]byte(node.Annotations["taintlet.dev/record"]), &r); err != nil {
		return record{}
	}
	return r
}

func writtenBy(instance string) func(*corev1.Node) bool {
	return func(node *corev1.Node) bool { return recordOf(node).Instance.Name == instance }
}

// events counts the Events about the Node with that reason.
func events(t *testing.T, c *cluster.Cluster, node, reason string) int {
	t.Helper()
	list, err := c.Client().CoreV1().Events("default").List(t.Context(), byName("involvedObject.name", node))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, event := range list.Items {
		if event.Reason == reason {
			count += int(max(1, event.Count))
		}
	}
	return count
}

// annotateAsKubelet writes an annotation with the identity of the Node's own
// kubelet, which may do that and may not change a taint.
func annotateAsKubelet(t *testing.T, c *cluster.Cluster, name, key, value string) {
	t.Helper()
	identity, err := c.Config("system:node:"+name, "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(identity)
	if err != nil {
		t.Fatal(err)
	}
	patch := marshal(t, map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if _, err := client.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// wantTaints compares all taints of the node, in order.
func wantTaints(t *testing.T, node *corev1.Node, want ...corev1.Taint) {
	t.Helper()
	if !slices.EqualFunc(node.Spec.Taints, want, sameTaint) {
		t.Errorf("taints of %s = %v, want %v", node.Name, node.Spec.Taints, want)
	}
}

// sameTaint compares what people write of a taint.
func sameTaint(a, b corev1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
}

// dedicated is a taint of somebody else's.
var dedicated = corev1.Taint{Key: "dedicated", Value: "group", Effect: corev1.TaintEffectNoSchedule}

// addTaint does as kubectl taint.
func addTaint(t *testing.T, c *cluster.Cluster, node string, taint corev1.Taint) {
	t.Helper()
	now := waitNode(t, c, node, func(*corev1.Node) bool { return true })
	c.SetTaints(t, node, append(now.Spec.Taints, taint)...)
}

func refusedForTaint(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return cluster.Unschedulable(pod) && strings.Contains(condition.Message, "untolerated taint")
		}
	}
	return false
}

// canaries is how many pods or DaemonSets may come before somebody has heard of
// a taint. A Node has room for 110 pods.
const canaries = 50

// schedulerKnows waits until the scheduler refuses pods with these tolerations:
// it hears of a taint a little later than we do.
func schedulerKnows(t *testing.T, c *cluster.Cluster, node string, tolerations ...corev1.Toleration) {
	t.Helper()
	for range canaries {
		name := node + "-canary-" + rand.String(5)
		c.CreatePod(t, cluster.NewPod(name, node, tolerations...))
		pod, err := c.WaitPod(t.Context(), "default", name, func(pod *corev1.Pod) bool {
			return cluster.Scheduled(pod) || refusedForTaint(pod)
		})
		if err != nil {
			t.Fatal(err)
		}
		if !cluster.Scheduled(pod) {
			return
		}
	}
	t.Fatalf("the scheduler sends one pod after the other to node %s", node)
}
