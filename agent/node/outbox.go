package node

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/taints/pace"
)

// Outbox holds the desired state until its writer takes it. One goroutine, the loop of the agent,
// calls its methods, but for Run.
type Outbox struct {
	// Results are the results of the jobs. The receiver passes each one to Observe.
	Results chan Result

	writer   writer
	jobs     chan job      // has room for one
	alive    chan struct{} // the same
	sequence uint64        // of the newest job
	// handedOut is what it desires; nil: there is none that may still land.
	handedOut *taints.Desired
	// isWritten: the Node had all of it.
	isWritten bool
	// announcements of evictions that the writer makes before the taints.
	announcements []announcement
	// refused is what the API server said to the newest write, if it refused it.
	refused string
}

// NewOutbox returns an empty Outbox. A NoExecute taint is added until the time that
// mayEvictUntil returns, by the clock of now. crowd returns the time in which all agents of
// the fleet write once.
func NewOutbox(client Client, mayEvictUntil, now func() time.Time, crowd func() time.Duration, log *slog.Logger) *Outbox {
	o := &Outbox{Results: make(chan Result), jobs: make(chan job, 1), alive: make(chan struct{}, 1)}
	o.writer = writer{
		client: client, log: log, jobs: o.jobs, alive: o.alive, results: o.Results,
		mayEvictUntil: mayEvictUntil, now: now, crowd: crowd, announced: map[announcement]bool{},
	}
	return o
}

// Run writes the desired state until the context ends.
func (o *Outbox) Run(ctx context.Context) error { return o.writer.run(ctx) }

// Put hands the desired state to the writer, unless the writer already has it. It replaces a job
// that the writer has not begun. If another client removed conditions after they were written, Put
// hands them out again.
func (o *Outbox) Put(base *taints.Node, desired taints.Desired) {
	isRemoved := o.isWritten && lacksCondition(base, desired)
	if o.handedOut != nil && !isRemoved && brings(*o.handedOut, desired, base) {
		return
	}
	o.discard()
	o.isWritten = false
	o.sequence++
	o.handedOut = &desired
	o.jobs <- job{sequence: o.sequence, base: base, desired: desired, announce: slices.Clone(o.announcements)}
}

// brings reports whether what was handed out does all that a newer decision asks
// for, which was decided on base. As soon as the taints stand there, they are owned in
// the newer one. The conditions that follow the taints are not written twice for
// that.
func brings(handedOut, newer taints.Desired, base *taints.Node) bool {
	if _, differs := newer.Differs(base); !differs {
		handedOut.Owned = newer.Owned
	}
	return reflect.DeepEqual(handedOut, newer)
}

// lacksCondition reports whether the Node has not all conditions that are desired.
func lacksCondition(node *taints.Node, desired taints.Desired) bool {
	return slices.ContainsFunc(desired.Conditions, func(c taints.NodeCondition) bool { return node.Condition(c.Type) == nil })
}

// discard takes back what the writer has not begun with. The same may be
// put again.
func (o *Outbox) discard() {
	o.handedOut = nil
	select {
	case <-o.jobs:
	default:
	}
}

// Withdraw takes back the newest job even if the writer has begun with it: a writer that waits
// before its next try, or joins jobs, then has nothing to write.
func (o *Outbox) Withdraw() {
	o.discard()
	o.jobs <- job{}
}

// SignOfLife wakes a writer that waits before its next try: the API server answers.
func (o *Outbox) SignOfLife() {
	select {
	case o.alive <- struct{}{}:
	default: // there is one already
	}
}

// AllowRepeat lets the next job be equal to the one before, as a heartbeat is.
func (o *Outbox) AllowRepeat() { o.handedOut = nil }

// Announce has the writer write an Event of an eviction before the taint is set. It replaces an
// unwritten Event of the same reason, which is about an eviction that never came: each Event can
// delay the taint by announceTimeout.
func (o *Outbox) Announce(reason, message string, at time.Time) {
	o.announcements = slices.DeleteFunc(slices.Clone(o.announcements), func(before announcement) bool { return before.reason == reason })
	o.announcements = append(o.announcements, announcement{reason, message, at})
}

// Observe takes in the result of a job and reports whether the state that is desired now is on the
// Node. evictionPending reports whether the Node lacks a taint that was announced.
func (o *Outbox) Observe(r Result, evictionPending func(*taints.Node) bool) bool {
	switch {
	case r.Err == nil:
		o.refused = ""
	case pace.IsRefusal(r.Err):
		o.refused = r.Err.Error()
	}
	if r.sequence != o.sequence {
		return false
	}
	if r.Err == nil && !evictionPending(r.Node) {
		o.announcements = nil
	}
	if errors.Is(r.Err, apiserver.ErrOvertaken) || errors.Is(r.Err, ErrAnswersAgain) {
		o.handedOut = nil // decided anew
	}
	o.isWritten = r.Err == nil
	return r.Err == nil
}

// Refused is the error with which the API server refused the newest write; empty if it did not.
func (o *Outbox) Refused() string { return o.refused }

// job is what is desired of the Node, and the Node on which it was decided.
type job struct {
	sequence uint64
	base     *taints.Node
	desired  taints.Desired
	// announce is written before the Node is written, if that evicts.
	announce []announcement
	// waited: its taints were written, and its conditions waited for those of other agents.
	waited bool
}

// isWithdrawal reports whether the job is to write nothing.
func (j job) isWithdrawal() bool { return j.base == nil }

// isUrgent reports whether the job is more than a refresh of our conditions.
func (j job) isUrgent() bool {
	_, differs := j.desired.Differs(j.base)
	return differs
}

// announcement of an eviction. The time tells it from another with the same
// words.
type announcement struct {
	reason, message string
	at              time.Time
}

// Result is the result of a job.
type Result struct {
	sequence uint64
	// Node is the newest version seen, or nil.
	Node *taints.Node
	// Landed is Node, or if another client replaced our record since the write, the Node as the write
	// left it: the conditions are patched after the taints.
	Landed *taints.Node
	// Err is why the Node does not have all of it.
	Err error
	// IsRestored: the Node is older than the version on which the decision was made.
	IsRestored bool
}
