// What tests do to a cluster. Each of these fails the test if it cannot be done.

package cluster

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Eventually asks again and again until the answer is no error: for what no watch
// tells. It waits for three minutes at most.
func Eventually(t testing.TB, what string, holds func() error) {
	t.Helper()
	const patience, askEvery = 5 * time.Minute, 50 * time.Millisecond
	for deadline := time.Now().Add(patience); ; time.Sleep(askEvery) {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s: %v", what, err)
		}
	}
}

// Register is RegisterNode for the length of the test.
func (c *Cluster) Register(t testing.TB, name string) *Node {
	t.Helper()
	node, err := c.RegisterNode(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Stop(); err != nil {
			t.Error(err)
		}
		if err := c.Client().CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return node
}

// GetNode reads a Node as it is now, which a watch may not know yet.
func (c *Cluster) GetNode(t testing.TB, name string) *corev1.Node {
	t.Helper()
	node, err := c.Client().CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// PatchNode merges a change into a Node and returns what the API server made of
// it.
func (c *Cluster) PatchNode(t testing.TB, name string, change map[string]any) *corev1.Node {
	t.Helper()
	patch, err := json.Marshal(change)
	if err != nil {
		t.Fatal(err)
	}
	node, err := c.Client().CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// SetTaints replaces a Node's taints and returns what the API server made of it.
func (c *Cluster) SetTaints(t testing.TB, name string, taints ...corev1.Taint) *corev1.Node {
	t.Helper()
	return c.PatchNode(t, name, map[string]any{"spec": map[string]any{"taints": taints}})
}

// WaitAgentEvent waits for an Event of taintlet about a Node whose message
// contains the text, and returns the message.
func (c *Cluster) WaitAgentEvent(t testing.TB, node, reason, text string) string {
	t.Helper()
	event, err := c.WaitEvent(t.Context(), "Node", node, reason, func(event *corev1.Event) bool {
		return event.Source.Component == "taintlet" && strings.Contains(event.Message, text)
	})
	if err != nil {
		t.Fatalf("no Event says %q: %v", text, err)
	}
	return event.Message
}

// NewPod is a pod that only the Node can take. Its QoS class is BestEffort.
func NewPod(name, node string, tolerations ...corev1.Toleration) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelHostname: node},
			Containers:   []corev1.Container{{Name: "main", Image: "none"}},
			Tolerations:  tolerations,
		},
	}
}

// CreatePod creates a pod for the length of the test, in the default namespace,
// and returns its name.
func (c *Cluster) CreatePod(t testing.TB, pod *corev1.Pod) string {
	t.Helper()
	pods := c.Client().CoreV1().Pods(metav1.NamespaceDefault)
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		now := int64(0) // there is no kubelet to wait for
		if err := pods.Delete(context.Background(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			t.Error(err)
		}
	})
	return pod.Name
}

// Keep is InstallKeep for the length of the test.
func (c *Cluster) Keep(t testing.TB) {
	t.Helper()
	if err := c.InstallKeep(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		policies := c.Client().AdmissionregistrationV1()
		if err := policies.MutatingAdmissionPolicyBindings().Delete(context.Background(), keepPolicy, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if err := policies.MutatingAdmissionPolicies().Delete(context.Background(), keepPolicy, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// Kubeconfig writes a kubeconfig file for the length of the test and returns its
// path.
func Kubeconfig(t testing.TB, config *rest.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := WriteKubeconfig(path, config); err != nil {
		t.Fatal(err)
	}
	return path
}

// RunKubectl runs the real kubectl as the administrator and returns what it prints.
func (c *Cluster) RunKubectl(t testing.TB, args ...string) string {
	t.Helper()
	out, err := c.tryKubectl(t, args...)
	if err != nil {
		t.Fatalf("kubectl %.300s: %v\n%.2000s", strings.Join(args, " "), err, out)
	}
	return out
}

func (c *Cluster) tryKubectl(t testing.TB, args ...string) (string, error) {
	t.Helper()
	program, err := Kubectl(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program, args...)
	command.Env = KubectlEnv(Kubeconfig(t, c.Admin()), t.TempDir())
	out, err := command.CombinedOutput()
	return string(out), err
}
