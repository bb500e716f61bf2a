package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// register registers a node for the length of the test.
func register(t *testing.T, c *Cluster, name string) *Node {
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

// createPod makes a pod that only fits on that node, without binding it there.
func createPod(t *testing.T, c *Cluster, name, node string) *corev1.Pod {
	t.Helper()
	pod, err := c.Client().CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelHostname: node},
			Containers:   []corev1.Container{{Name: "main", Image: "none"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		now := int64(0) // there is no kubelet to wait for
		err := c.Client().CoreV1().Pods("default").Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		if err != nil {
			t.Error(err)
		}
	})
	return pod
}

func taint(key string) corev1.Taint {
	return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}
}

// setTaints replaces a Node's taints and returns what the API server made of it.
func setTaints(t *testing.T, c *Cluster, name string, taints ...corev1.Taint) *corev1.Node {
	t.Helper()
	return patchNode(t, c, name, map[string]any{"spec": map[string]any{"taints": taints}})
}

func patchNode(t *testing.T, c *Cluster, name string, change map[string]any) *corev1.Node {
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

func hasCondition(kind corev1.NodeConditionType, status corev1.ConditionStatus) func(*corev1.Node) bool {
	return func(node *corev1.Node) bool {
		found := find(node.Status.Conditions, kind)
		return found != nil && found.Status == status
	}
}

// running says whether a process runs; a zombie, which waits for a parent
// that may never ask, does not.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

func gone(ctx context.Context, pid int) error {
	for running(pid) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// endThreads makes that many goroutines hold a thread each, the runtime's idle
// ones first, and ends them all.
func endThreads(count int) {
	var held, ended sync.WaitGroup
	held.Add(count)
	for range count {
		ended.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			held.Done()
			held.Wait()
		})
	}
	ended.Wait()
}
