package scale

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/measure"
)

// shownChanges is how many changes of foreign taints are told.
const shownChanges = 20

// view follows the taints of all Nodes, by a watch.
type view struct {
	stop   context.CancelFunc
	reader sync.WaitGroup

	mu sync.Mutex
	// tainted counts the Nodes with the taint of MemoryPressure, lastTainted is
	// when the newest came. changes counts how often that taint came or went,
	// foreign how often others changed, such as those of a Node that is not ready.
	tainted          int
	lastTainted      time.Time
	changes, foreign int
}

func newView(ctx context.Context, c *cluster.Cluster) (*view, error) {
	config := c.Admin()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	v := &view{}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "nodes", "", fields.Everything()), ObjectType: &corev1.Node{},
		// None is deleted while this program runs.
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { v.count(nil, object.(*corev1.Node)) },
			UpdateFunc: func(before, after any) { v.count(before.(*corev1.Node), after.(*corev1.Node)) },
		},
	})
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	v.stop = stop
	v.reader.Go(func() { informer.RunWithContext(work) })
	return v, nil
}

func (v *view) end() {
	v.stop()
	v.reader.Wait()
}

func isBad(node *corev1.Node) bool {
	return node != nil && slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeMemoryPressure })
}

// count takes in a version of a Node, and the one before it; nil: there is none.
func (v *view) count(before, after *corev1.Node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	same := func(a, b corev1.Taint) bool { return a.MatchTaint(&b) && a.Value == b.Value }
	was, is := isBad(before), isBad(after)
	switch {
	case before != nil && was != is:
		v.changes++
	case before != nil && !slices.EqualFunc(before.Spec.Taints, after.Spec.Taints, same):
		v.foreign++
		if v.foreign <= shownChanges {
			measure.Say("taints of %s: %v became %v", after.Name, before.Spec.Taints, after.Spec.Taints)
		}
	}
	switch {
	case is && !was:
		v.tainted, v.lastTainted = v.tainted+1, time.Now()
	case was && !is:
		v.tainted--
	}
}

// now returns how many Nodes are tainted, since when, and how many changes of taints
// there were.
func (v *view) now() (tainted int, last time.Time, changes int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.tainted, v.lastTainted, v.changes
}
