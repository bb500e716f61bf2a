package node

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/taints"
)

// Overlay is the Node of a dry run: a Node that is not written, with the agent's own
// writes laid over it, so that the agent goes on as if they had been kept.
type Overlay struct {
	// below answers with the Node as it would be, and keeps nothing.
	below Client
	log   *slog.Logger

	mu   sync.Mutex
	real *taints.Node
	// laid is what the real Node lacks of what was desired.
	laid taints.Desired
	// version counts what was shown: the real resourceVersion does not move with
	// a write that is not kept.
	version uint64
}

// NewOverlay returns the Node of a dry run: of --dry-run=client over a Memory, of
// --dry-run=server over a client whose writes the API server checks and does not keep.
func NewOverlay(below Client, log *slog.Logger) *Overlay { return &Overlay{below: below, log: log} }

// Watch sends every version of the real Node, with what is laid over it.
func (o *Overlay) Watch(ctx context.Context, versions chan<- *taints.Node) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	real := make(chan *taints.Node)
	ended := make(chan error, 1)
	go func() { ended <- o.below.Watch(ctx, real) }()
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

// Apply has the Node below check what is desired, and lays it over that Node.
func (o *Overlay) Apply(ctx context.Context, base *taints.Node, desired taints.Desired) (*taints.Node, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.real == nil {
		return base, fmt.Errorf("dry run: node %s has not been seen", base.Name)
	}
	before := o.laid.ApplyTo(o.real)
	// The real Node does not have the transitions that were not kept.
	desired.Conditions = before.Transitions(desired.Conditions)
	answer, err := o.below.Apply(ctx, o.real, desired)
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

// shown returns the real Node with what is laid over it; nil: there is no Node.
func (o *Overlay) shown() *taints.Node {
	if o.real == nil {
		return nil
	}
	shown := o.laid.ApplyTo(o.real)
	o.version++
	shown.ResourceVersion = strconv.FormatUint(o.version, 10)
	return shown
}

// KeepPolicy asks the Node below.
func (o *Overlay) KeepPolicy(ctx context.Context, withVersion bool) (isPresent bool, version string, err error) {
	return o.below.KeepPolicy(ctx, withVersion)
}

// Announce sends the Event, which is not kept, and logs it.
func (o *Overlay) Announce(ctx context.Context, node *taints.Node, reason, message string) error {
	o.log.Info("dry run: would write an event", "type", corev1.EventTypeWarning, "reason", reason, "message", message)
	return o.below.Announce(ctx, node, reason, message)
}
