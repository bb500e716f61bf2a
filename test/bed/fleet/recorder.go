package fleet

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

// condition is the Node condition that is recorded.
const condition = "HostNetworkUnavailable"

// State is what a Node says of its network.
type State struct {
	Tainted         bool
	Status          corev1.ConditionStatus
	Reason, Message string
}

// same reports whether two states differ in no more than a message.
func (s State) same(other State) bool {
	return s.Tainted == other.Tainted && s.Status == other.Status && s.Reason == other.Reason
}

func stateOf(node *corev1.Node) State {
	s := State{Tainted: slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		// The well-known key, or the one that stands in for it.
		return strings.HasSuffix(taint.Key, "/network-unavailable")
	})}
	if c := cluster.Condition(node, condition); c != nil {
		s.Status, s.Reason, s.Message = c.Status, c.Reason, c.Message
	}
	return s
}

// Change is a new State of a Node.
type Change struct {
	At   time.Time
	Node string
	State
}

// String is one line of a list of changes.
func (c Change) String() string {
	return fmt.Sprintf("%s %s tainted=%t %s %s: %.200s", c.At.Format("15:04:05.000"), c.Node, c.Tainted, c.Status, c.Reason, c.Message)
}

// Recorder keeps every Change of every Node, as an administrator's watch tells
// them.
type Recorder struct {
	stop context.CancelFunc

	mu      sync.Mutex
	states  map[string]State
	changes []Change
	more    chan struct{} // closed and replaced when there is a change
}

func record(c *cluster.Cluster) *Recorder {
	ctx, cancel := context.WithCancel(context.Background())
	r := &Recorder{stop: cancel, states: map[string]State{}, more: make(chan struct{})}
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

func (r *Recorder) take(node *corev1.Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := stateOf(node)
	if old, known := r.states[node.Name]; !known || !old.same(s) {
		r.changes = append(r.changes, Change{time.Now(), node.Name, s})
	}
	r.states[node.Name] = s
	close(r.more)
	r.more = make(chan struct{})
}

func (r *Recorder) forget(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.states, object.(*corev1.Node).Name)
}

// Since returns the changes from that time on, oldest first.
func (r *Recorder) Since(start time.Time) []Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, _ := slices.BinarySearchFunc(r.changes, start, func(c Change, t time.Time) int { return c.At.Compare(t) })
	return slices.Clone(r.changes[first:])
}

// Tainted returns the names of the Nodes that are, sorted.
func (r *Recorder) Tainted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return TaintedIn(r.states)
}

// TaintedIn is Tainted for other states.
func TaintedIn(states map[string]State) []string {
	var names []string
	for name, s := range states {
		if s.Tainted {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, cmp.Compare)
	return names
}

// Wait waits until it holds for the states of all Nodes, and says whether it did
// before the time was over.
func (r *Recorder) Wait(patience time.Duration, holds func(map[string]State) bool) bool {
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

// Show lists changes, one a line.
func Show(changes []Change) string {
	var lines []string
	for _, c := range changes {
		lines = append(lines, c.String())
	}
	return strings.Join(lines, "\n")
}
