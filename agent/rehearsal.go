package agent

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

// Rehearsal is the Node of --dry-run=server: every change is sent to the API
// server, which checks it and keeps nothing (dryRun=All). What the agent sees is
// the real Node with its own last change on top, so that it goes on as if that
// had been kept.
type Rehearsal struct {
	// client sends its writes with dryRun=All.
	client *apiserver.Client
	log    *slog.Logger

	mu   sync.Mutex
	real *taints.Node
	// kept is what the real Node lacks of the changes.
	kept taints.Change
	// version counts what was shown: the real resourceVersion does not move with
	// a change that is not kept.
	version uint64
}

// NewRehearsal returns the Node of a client whose writes are dry runs.
func NewRehearsal(client *apiserver.Client, log *slog.Logger) *Rehearsal {
	return &Rehearsal{client: client, log: log}
}

// Watch sends every version of the real Node, with what was not kept.
func (r *Rehearsal) Watch(ctx context.Context, nodes chan<- *taints.Node) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	versions := make(chan *taints.Node)
	ended := make(chan error, 1)
	go func() { ended <- r.client.Watch(ctx, versions) }()
	for {
		select {
		case err := <-ended:
			return err
		case node := <-versions:
			select {
			case nodes <- r.see(node):
			case <-ctx.Done():
			}
		}
	}
}

// see takes a version of the real Node in, and returns what the agent sees.
func (r *Rehearsal) see(node *taints.Node) *taints.Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	if node == nil || r.real != nil && r.real.UID != node.UID {
		r.kept = taints.Change{} // a new Node has nothing of the old one
	}
	r.real = node
	return r.shown()
}

// shown returns the real Node with what was not kept.
func (r *Rehearsal) shown() *taints.Node {
	if r.real == nil {
		return nil
	}
	node := r.kept.ApplyTo(r.real)
	r.version++
	node.ResourceVersion = strconv.FormatUint(r.version, 10)
	return node
}

// Apply sends the change on top of the real Node, and remembers it.
func (r *Rehearsal) Apply(ctx context.Context, base *taints.Node, change taints.Change) (*taints.Node, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.real == nil {
		return base, fmt.Errorf("dry run: node %s has not been seen", base.Name)
	}
	before := r.kept.ApplyTo(r.real)
	// The real Node does not have the transitions that were not kept.
	change.Conditions = before.Transitions(change.Conditions)
	answer, err := r.client.Apply(ctx, r.real, change)
	if err != nil {
		return r.shown(), err
	}
	r.keep(change, answer)
	node := r.shown()
	if !taints.Equal(before.Taints, node.Taints) {
		r.log.Info("dry run: the API server would let the taints of the node change", "from", describe(before.Taints), "to", describe(node.Taints))
	}
	r.log.Debug("dry run: the API server would take the patch of the node", "annotations", change.Annotations)
	for _, c := range change.Conditions {
		if was := before.Condition(c.Type); was == nil || was.Status != c.Status || was.Reason != c.Reason {
			r.log.Info("dry run: the API server would take the node condition", "type", c.Type, "status", string(c.Status), "reason", c.Reason, "message", c.Message)
		}
	}
	return node, nil
}

// keep remembers a change that the API server would take. answer is the Node with
// its conditions.
func (r *Rehearsal) keep(change taints.Change, answer *taints.Node) {
	owned := r.kept.Owned
	for _, pair := range change.Owned {
		if !slices.Contains(owned, pair) {
			owned = append(owned, pair) // for good: the real Node may go on carrying it
		}
	}
	conditions := r.kept.Conditions
	if len(change.Conditions) > 0 {
		conditions = nil
		for _, c := range change.Conditions {
			if written := answer.Condition(c.Type); written != nil {
				conditions = append(conditions, *written)
			}
		}
	}
	r.kept = change
	r.kept.Owned, r.kept.Conditions = owned, conditions
}

// KeepPolicyPresent asks the API server.
func (r *Rehearsal) KeepPolicyPresent(ctx context.Context) (bool, error) {
	return r.client.KeepPolicyPresent(ctx)
}

// Announce sends the Event, which is not kept, and logs it.
func (r *Rehearsal) Announce(ctx context.Context, node *taints.Node, reason, message string) error {
	r.log.Info("dry run: would write an event", "type", corev1.EventTypeWarning, "reason", reason, "message", message)
	return r.client.Announce(ctx, node, reason, message)
}
