package network

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/taintlet/taintlet/test/cluster"
)

// condition is the Node condition that these tests are about.
const condition = "HostNetworkUnavailable"

// state is what a Node says of its network.
type state struct {
	tainted         bool
	status          corev1.ConditionStatus
	reason, message string
}

// same reports whether two states differ in no more than a message.
func (s state) same(other state) bool {
	return s.tainted == other.tainted && s.status == other.status && s.reason == other.reason
}

func stateOf(node *corev1.Node) state {
	s := state{tainted: slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		// The well-known key, or the one that stands in for it.
		return strings.HasSuffix(taint.Key, "/network-unavailable")
	})}
	if c := cluster.Condition(node, condition); c != nil {
		s.status, s.reason, s.message = c.Status, c.Reason, c.Message
	}
	return s
}

// change is a new state of a Node.
type change struct {
	at   time.Time
	node string
	state
}

func (c change) String() string {
	return fmt.Sprintf("%s %s tainted=%t %s %s: %.200s", c.at.Format("15:04:05.000"), c.node, c.tainted, c.status, c.reason, c.message)
}

// recorder keeps every change of every Node, as an administrator's watch tells
// them.
type recorder struct {
	stop context.CancelFunc

	mu      sync.Mutex
	states  map[string]state
	changes []change
	more    chan struct{} // closed and replaced when there is a change
}

func record(c *cluster.Cluster) *recorder {
	ctx, cancel := context.WithCancel(context.Background())
	r := &recorder{stop: cancel, states: map[string]state{}, more: make(chan struct{})}
	nodes := c.Client().CoreV1().Nodes()
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return nodes.List(ctx, o) },
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return nodes.Watch(ctx, o)
			},
		},
		ObjectType: &corev1.Node{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { r.take(object.(*corev1.Node)) },
			UpdateFunc: func(_, object any) { r.take(object.(*corev1.Node)) },
			DeleteFunc: r.forget,
		},
	})
	go controller.RunWithContext(ctx)
	return r
}

func (r *recorder) take(node *corev1.Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := stateOf(node)
	if old, known := r.states[node.Name]; !known || !old.same(s) {
		r.changes = append(r.changes, change{time.Now(), node.Name, s})
	}
	r.states[node.Name] = s
	close(r.more)
	r.more = make(chan struct{})
}

func (r *recorder) forget(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.states, object.(*corev1.Node).Name)
}

// since returns the changes from that time on, oldest first.
func (r *recorder) since(start time.Time) []change {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, _ := slices.BinarySearchFunc(r.changes, start, func(c change, t time.Time) int { return c.at.Compare(t) })
	return slices.Clone(r.changes[first:])
}

// tainted returns the names of the Nodes that are, sorted.
func (r *recorder) tainted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return taintedIn(r.states)
}

func taintedIn(states map[string]state) []string {
	var names []string
	for name, s := range states {
		if s.tainted {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, cmp.Compare)
	return names
}

// wait waits until it holds for the states of all Nodes, and says whether it did
// before the time was over.
func (r *recorder) wait(patience time.Duration, holds func(map[string]state) bool) bool {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		r.mu.Lock()
		held, more := holds(r.states), r.more
		r.mu.Unlock()
		if held {
			return true
		}
		select {
		case <-more:
		case <-deadline.C:
			return false
		}
	}
}

// show lists changes, one a line.
func show(changes []change) string {
	var lines []string
	for _, c := range changes {
		lines = append(lines, c.String())
	}
	return strings.Join(lines, "\n")
}
