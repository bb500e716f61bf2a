package hosts

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Version is a Node as it was from a moment on.
type Version struct {
	At   time.Time
	Node *corev1.Node
}

// History has all versions of a Node since it was first watched.
type History struct {
	mu       sync.Mutex
	versions []Version
	changed  chan struct{} // closed by the next version
}

// watch follows a Node, which need not exist yet, until the context ends.
func watch(ctx context.Context, client kubernetes.Interface, name string) (*History, error) {
	h := &History{changed: make(chan struct{})}
	source := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "nodes", metav1.NamespaceAll,
		fields.OneTermEqualSelector(metav1.ObjectNameField, name))
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source,
		ObjectType:    &corev1.Node{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(node any) { h.add(node.(*corev1.Node)) },
			UpdateFunc: func(_, node any) { h.add(node.(*corev1.Node)) },
		},
	})
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("watch Node %s: %w", name, ctx.Err())
	}
	return h, nil
}

func (h *History) add(node *corev1.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.versions = append(h.versions, Version{time.Now(), node})
	close(h.changed)
	h.changed = make(chan struct{})
}

// since returns the version of that moment, if there was one, and the later ones.
func (h *History) since(moment time.Time) ([]Version, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := 0
	for i, version := range h.versions {
		if !version.At.After(moment) {
			first = i
		}
	}
	return slices.Clone(h.versions[min(first, len(h.versions)):]), h.changed
}

// Wait returns the first version at that moment or later for which the condition holds. The
// error of a context that ends before shows the Node's last conditions.
func (h *History) Wait(ctx context.Context, moment time.Time, what string, holds func(*corev1.Node) bool) (Version, error) {
	for {
		versions, changed := h.since(moment)
		for _, version := range versions {
			if holds(version.Node) {
				return version, nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if len(versions) == 0 {
				return Version{}, fmt.Errorf("wait until %s: no Node: %w", what, ctx.Err())
			}
			return versions[len(versions)-1], fmt.Errorf("wait until %s: %w; last seen: %s", what, ctx.Err(), Brief(versions[len(versions)-1].Node))
		}
	}
}

// Brief shows a Node's taints and conditions.
func Brief(node *corev1.Node) string {
	text := ""
	for _, taint := range node.Spec.Taints {
		text += fmt.Sprintf("\n  taint %s:%s", taint.Key, taint.Effect)
	}
	for _, condition := range node.Status.Conditions {
		text += fmt.Sprintf("\n  %s %s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	return text
}
