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

// view shows the Nodes of a cluster as they are now. It is what a Reflector
// keeps.
type view struct {
	mu    sync.Mutex
	nodes map[string]*corev1.Node
	// deleted has the resource versions of deletions.
	deleted map[string]string
}

func newView(t *testing.T, c *cluster.Cluster) *view {
	t.Helper()
	v := &view{nodes: map[string]*corev1.Node{}, deleted: map[string]string{}}
	source := cache.NewListWatchFromClient(c.Client().CoreV1().RESTClient(), "nodes", "", fields.Everything())
	reflector := cache.NewReflectorWithOptions(source, &corev1.Node{}, v, cache.ReflectorOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	var reader sync.WaitGroup
	reader.Go(func() { reflector.RunWithContext(ctx) })
	t.Cleanup(func() {
		cancel()
		reader.Wait()
	})
	return v
}

func (v *view) Add(node any) error { return v.Update(node) }
func (v *view) Resync() error      { return nil }

func (v *view) Update(object any) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	node := object.(*corev1.Node)
	v.nodes[node.Name] = node
	return nil
}

func (v *view) Delete(object any) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	node := object.(*corev1.Node)
	v.deleted[node.Name] = node.ResourceVersion
	delete(v.nodes, node.Name)
	return nil
}

func (v *view) Replace(objects []any, _ string) error {
	v.mu.Lock()
	clear(v.nodes)
	v.mu.Unlock()
	for _, object := range objects {
		if err := v.Update(object); err != nil {
			return err
		}
	}
	return nil
}

// matching returns the names of the Nodes for which it holds now.
func (v *view) matching(holds func(*corev1.Node) bool) map[string]bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	names := map[string]bool{}
	for name, node := range v.nodes {
		if holds(node) {
			names[name] = true
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
