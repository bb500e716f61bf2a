// Package node is where the agent's Node lives: its watch, the outbox with the writer
// behind it, the lookup of the admission policy, and the Nodes of dry runs.
package node

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/taints"
)

// Client reads and writes the Node: behind an API server (*apiserver.Client), in memory
// (*Memory), or either of them with the writes of a dry run laid over it (*Overlay).
type Client interface {
	// Watch sends every version of the Node, nil while there is none, until
	// the context ends.
	Watch(ctx context.Context, versions chan<- *taints.Node) error
	// Apply writes the desired state to the Node and returns the newest version seen, also with an
	// error.
	Apply(ctx context.Context, base *taints.Node, desired taints.Desired) (*taints.Node, error)
	// Ping asks for little. Its error says whether the API server answers: with a status of it,
	// it does.
	Ping(ctx context.Context) error
	// KeepPolicy reports whether the admission policy that keeps our pairs is there, and its
	// version where that is asked for.
	KeepPolicy(ctx context.Context, withVersion bool) (isPresent bool, version string, err error)
	// Announce writes a warning Event about the Node before it returns.
	Announce(ctx context.Context, node *taints.Node, reason, message string) error
}

// requestTimeout is how long the API server may take: a connection that hangs
// must not stop the writing for ever. A server that is only slow gets longer with
// each try.
const (
	requestTimeout    = 10 * time.Second
	maxRequestTimeout = 40 * time.Second
)

// Memory is a Node without an API server, which no other client writes. Apply answers with the Node
// as it would be, and keeps nothing.
type Memory struct {
	name string
	log  *slog.Logger
}

// NewMemory returns a Node of that name without any taint.
func NewMemory(name string, log *slog.Logger) *Memory { return &Memory{name, log} }

// Watch sends the Node once.
func (m *Memory) Watch(ctx context.Context, versions chan<- *taints.Node) error {
	select {
	case versions <- &taints.Node{Name: m.name, UID: "dry-run", ResourceVersion: "1"}:
	case <-ctx.Done():
	}
	<-ctx.Done()
	return ctx.Err()
}

// Apply returns the next version of the base, with the desired state.
func (m *Memory) Apply(_ context.Context, base *taints.Node, desired taints.Desired) (*taints.Node, error) {
	version, err := strconv.ParseUint(base.ResourceVersion, 10, 64)
	if err != nil {
		return base, err
	}
	after := desired.ApplyTo(base)
	after.ResourceVersion = strconv.FormatUint(version+1, 10)
	return after, nil
}

// Announce does nothing: this Node has no Events.
func (m *Memory) Announce(context.Context, *taints.Node, string, string) error { return nil }

// Ping is answered always.
func (m *Memory) Ping(context.Context) error { return nil }

// KeepPolicy is there: the run shows what a complete installation does.
func (m *Memory) KeepPolicy(context.Context, bool) (isPresent bool, version string, err error) {
	m.log.Info("dry run: assuming that the admission policy " + taints.KeepPolicyName + " is installed")
	return true, "dry-run", nil
}

// Overlay is the Node of a dry run: a Node that is never written, with the agent's writes laid over
// it, so that the agent continues as if they had been stored.
type Overlay struct {
	Client // it answers with the Node as it would be, and keeps nothing
	log    *slog.Logger

	mu   sync.Mutex
	real *taints.Node
	// laid is the part of the desired state that the real Node lacks.
	laid taints.Desired
	// version counts what was shown: the real resourceVersion does not move with
	// a write that is not kept.
	version uint64
}

// NewOverlay returns the Node of a dry run: of --dry-run=client over a Memory, of
// --dry-run=server over a client whose writes the API server checks and does not keep.
func NewOverlay(below Client, log *slog.Logger) *Overlay { return &Overlay{Client: below, log: log} }

// Watch sends every version of the real Node, with the agent's writes laid over it.
func (o *Overlay) Watch(ctx context.Context, versions chan<- *taints.Node) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	real := make(chan *taints.Node)
	ended := make(chan error, 1)
	go func() { ended <- o.Client.Watch(ctx, real) }()
	for {
		select {
		case err := <-ended:
			return err
		case version := <-real:
			select {
			case versions <- o.observe(version):
			case <-ctx.Done():
			}
		}
	}
}

// observe takes a version of the real Node in, and returns what the agent sees.
func (o *Overlay) observe(version *taints.Node) *taints.Node {
	o.mu.Lock()
	defer o.mu.Unlock()
	if version == nil || o.real != nil && o.real.UID != version.UID {
		o.laid = taints.Desired{} // a new Node has nothing of the old one
	}
	o.real = version
	return o.shown()
}

// Apply has the Node below check the desired state, and lays it over that Node.
func (o *Overlay) Apply(ctx context.Context, base *taints.Node, desired taints.Desired) (*taints.Node, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.real == nil {
		return base, fmt.Errorf("dry run: node %s has not been seen", base.Name)
	}
	before := o.laid.ApplyTo(o.real)
	// The real Node does not have the transitions that were not kept.
	desired.Conditions = before.Transitions(desired.Conditions)
	answer, err := o.Client.Apply(ctx, o.real, desired)
	if err != nil {
		return o.shown(), err
	}
	o.lay(desired, answer)
	after := o.shown()
	if !taints.Equal(before.Taints, after.Taints) {
		o.log.Info("dry run: would change the taints of the node", "from", describe(before.Taints), "to", describe(after.Taints))
	}
	o.log.Debug("dry run: would patch the node", "annotations", desired.Annotations)
	for _, c := range desired.Conditions {
		if was := before.Condition(c.Type); was == nil || was.Status != c.Status || was.Reason != c.Reason {
			o.log.Info("dry run: would set the node condition", "type", c.Type, "status", string(c.Status), "reason", c.Reason, "message", c.Message)
		}
	}
	return after, nil
}

// lay remembers what the Node below would take. answer is that Node with its
// conditions.
func (o *Overlay) lay(desired taints.Desired, answer *taints.Node) {
	owned := o.laid.Owned
	for _, pair := range desired.Owned {
		if !slices.Contains(owned, pair) {
			owned = append(owned, pair) // for good: the real Node may go on carrying it
		}
	}
	conditions := o.laid.Conditions
	if len(desired.Conditions) > 0 {
		conditions = nil
		for _, c := range desired.Conditions {
			if written := answer.Condition(c.Type); written != nil {
				conditions = append(conditions, *written)
			}
		}
	}
	desired.Owned, desired.Conditions = owned, conditions
	o.laid = desired
}

// shown returns the real Node with the agent's writes laid over it; nil: there is no Node.
func (o *Overlay) shown() *taints.Node {
	if o.real == nil {
		return nil
	}
	shown := o.laid.ApplyTo(o.real)
	o.version++
	shown.ResourceVersion = strconv.FormatUint(o.version, 10)
	return shown
}

// Announce sends the Event, which is not kept, and logs it.
func (o *Overlay) Announce(ctx context.Context, node *taints.Node, reason, message string) error {
	o.log.Info("dry run: would write an event", "type", corev1.EventTypeWarning, "reason", reason, "message", message)
	return o.Client.Announce(ctx, node, reason, message)
}
