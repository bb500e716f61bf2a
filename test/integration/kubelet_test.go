package integration

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/taintlet/taintlet/test/cluster"
)

// endPods does what others wait for a kubelet to do: it ends the pods of the
// node that are to be deleted, each after a time of its own up to that long, and
// says so by deleting them with no grace.
func endPods(t *testing.T, c *cluster.Cluster, node string, after time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	pods := c.Client().CoreV1().Pods("default")
	ofNode := byName("spec.nodeName", node).FieldSelector
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = ofNode
			return pods.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = ofNode
			return pods.Watch(ctx, options)
		},
	}
	var kubelet sync.WaitGroup
	kubelet.Go(func() {
		ending := map[types.UID]bool{}
		_, err := watchtools.UntilWithSync(ctx, source, &corev1.Pod{}, nil, func(event watch.Event) (bool, error) {
			pod, ok := event.Object.(*corev1.Pod)
			if ok && event.Type != watch.Deleted && isDeleted(pod) && !ending[pod.UID] {
				ending[pod.UID] = true
				kubelet.Go(func() { endPod(ctx, t, c, pod, after) })
			}
			return false, nil
		})
		if ctx.Err() == nil {
			t.Errorf("the stand-in for the kubelet of %s: %v", node, err)
		}
	})
	t.Cleanup(func() {
		cancel()
		kubelet.Wait()
	})
}

func endPod(ctx context.Context, t *testing.T, c *cluster.Cluster, pod *corev1.Pod, after time.Duration) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(rand.N(after + 1)): //nolint:gosec // not a secret
	}
	now := int64(0)
	err := c.Client().CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		t.Errorf("end pod %s: %v", pod.Name, err)
	}
}
