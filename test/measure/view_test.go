package measure

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/taintlet/taintlet/test/cluster"
)

// patience is how long an event is waited for: far above what a busy machine
// needs.
const patience = 3 * time.Minute

// view shows the Nodes of a cluster as they are now.
type view struct {
	nodes cache.Store

	mu sync.Mutex
	// deleted has the resource versions of deletions.
	deleted map[string]string
}

func newView(t *testing.T, c *cluster.Cluster) *view {
	t.Helper()
	v := &view{deleted: map[string]string{}}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(c.Client().CoreV1().RESTClient(), "nodes", "", fields.Everything()), ObjectType: &corev1.Node{},
		Handler: cache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
			v.mu.Lock()
			defer v.mu.Unlock()
			node := object.(*corev1.Node)
			v.deleted[node.Name] = node.ResourceVersion
		}},
	})
	v.nodes = store
	ctx, cancel := context.WithCancel(context.Background())
	var reader sync.WaitGroup
	reader.Go(func() { informer.RunWithContext(ctx) })
	t.Cleanup(func() {
		cancel()
		reader.Wait()
	})
	return v
}

// matching returns the names of the Nodes for which it holds now.
func (v *view) matching(holds func(*corev1.Node) bool) map[string]bool {
	names := map[string]bool{}
	for _, object := range v.nodes.List() {
		if node := object.(*corev1.Node); holds(node) {
			names[node.Name] = true
		}
	}
	return names
}

// until waits until at least count Nodes are as wanted, and returns their
// names. It checks now and then: with a check at each change of one of a thousand
// Nodes it would have no time left to read the changes.
func (v *view) until(t *testing.T, what string, count int, holds func(*corev1.Node) bool) map[string]bool {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		names := v.matching(holds)
		if len(names) >= count {
			return names
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d nodes with %s, want %d", len(names), what, count)
		}
	}
}
