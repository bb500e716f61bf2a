package agent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/taintlet/taintlet/taints"
)

// joinWithin is the time between two writes: the first change goes at once,
// those that follow within this time go together.
const joinWithin = 250 * time.Millisecond

// requestTimeout is how long the API server may take: a connection that hangs
// must not stop the writing for ever.
const requestTimeout = 30 * time.Second

// writer is the one goroutine that writes the Node and waits for the API
// server.
type writer struct {
	client  NodeClient
	log     *slog.Logger
	metrics *metrics
	jobs    <-chan job
	results chan<- result
	// mayEvictUntil is until when a NoExecute taint may be added.
	mayEvictUntil func() time.Time
	now           func() time.Time
	announced     map[announcement]bool
	// written is the Node as the last successful write left it.
	written *corev1.Node
}

// run writes the newest job until the context ends. After a failure it tries
// the same job again with growing pauses, unless a newer one came.
func (w *writer) run(ctx context.Context) error {
	backoff := newBackoff()
	var current *job
	for {
		if current == nil {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case j := <-w.jobs:
				current = &j
			}
		}
		current.change.Conditions = w.sameTransitions(*current)
		node, err := w.apply(ctx, *current)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			w.written = node
		}
		w.metrics.wrote(err)
		w.report(*current, node, err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case w.results <- result{current.sequence, node, err}:
		}
		pause := joinWithin
		if err != nil {
			pause = max(joinWithin, backoff.Step())
		} else {
			backoff = newBackoff()
		}
		if current = w.next(*current, node, err); !sleep(ctx, pause) {
			return ctx.Err()
		}
		select {
		case j := <-w.jobs: // newer than what is to be tried again
			current = &j
		default:
		}
	}
}

// errSlotStale: the slot was not renewed for so long that another Node may
// take it.
var errSlotStale = errors.New("the eviction slot could not be renewed for too long")

// announceTimeout is how long the Event before an eviction may take.
const announceTimeout = 5 * time.Second

// apply makes the change. A change that evicts is announced first, and made
// only while the slot is certainly ours: the request ends by then.
func (w *writer) apply(ctx context.Context, j job) (*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if !evicts(j) {
		return w.client.Apply(ctx, j.base, j.change)
	}
	left := w.mayEvictUntil().Sub(w.now())
	if left <= 0 {
		return nil, errSlotStale
	}
	ctx, cancelEviction := context.WithTimeout(ctx, left)
	defer cancelEviction()
	for _, a := range j.announce {
		if w.announced[a] {
			continue
		}
		if err := w.announce(ctx, j.base, a); err != nil {
			w.log.Warn("cannot announce an eviction by an Event", "error", err)
			continue
		}
		w.announced[a] = true
	}
	return w.client.Apply(ctx, j.base, j.change)
}

// sameTransitions gives conditions whose status the last write set already the
// time of that: lastTransitionTime moves with the status only, and the loop may
// have decided before it saw that write.
func (w *writer) sameTransitions(j job) []corev1.NodeCondition {
	if w.written == nil || !newer(w.written, j.base) {
		return j.change.Conditions
	}
	conditions := slices.Clone(j.change.Conditions)
	for i := range conditions {
		before := taints.Condition(w.written, conditions[i].Type)
		if before != nil && before.Status == conditions[i].Status {
			conditions[i].LastTransitionTime = before.LastTransitionTime
		}
	}
	return conditions
}

func (w *writer) announce(ctx context.Context, node *corev1.Node, a announcement) error {
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	return w.client.Announce(ctx, node, a.reason, a.message)
}

// evicts reports whether a job adds a NoExecute taint to its Node.
func evicts(j job) bool {
	return slices.ContainsFunc(j.change.Taints, func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoExecute && !taints.Has(j.base.Spec.Taints, taints.PairOf(t))
	})
}

// next returns what is to be tried again: nothing after success, and nothing
// when the loop has to decide again.
func (w *writer) next(failed job, newest *corev1.Node, err error) *job {
	if err == nil || errors.Is(err, taints.ErrOvertaken) {
		return nil
	}
	if newest != nil {
		failed.base = newest
	}
	return &failed
}

func (w *writer) report(j job, node *corev1.Node, err error) {
	switch {
	case errors.Is(err, taints.ErrOvertaken):
		w.log.Debug("node changed while writing", "error", err)
	case apierrors.IsNotFound(err):
		w.log.Warn("node does not exist; trying again", "error", err)
	case err != nil:
		w.log.Warn("cannot write the node; trying again", "error", err)
	default:
		if !taints.Equal(j.base.Spec.Taints, node.Spec.Taints) {
			w.log.Info("taints of the node changed", "from", describe(j.base.Spec.Taints), "to", describe(node.Spec.Taints))
		}
		if _, differs := j.change.Differs(node); differs {
			w.log.Warn("the API server took the patch but the node lacks a part of it; a webhook may have removed it")
		}
	}
}

// newBackoff grows from a second to a minute with jitter, so that a fleet does
// not come back all at once.
func newBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 7, Cap: time.Minute}
}

// sleep waits; false when the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// newer reports whether version a of a Node is newer than b. What cannot be
// compared counts as newer: the watch is then trusted.
func newer(a, b *corev1.Node) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err != nil || order > 0
}

// describe lists taints as kubectl shows them.
func describe(list []corev1.Taint) []string {
	described := make([]string, 0, len(list))
	for _, taint := range list {
		described = append(described, taints.PairOf(taint).String())
	}
	return described
}
