package agent

import (
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/pace"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

// outbox holds the newest change until the writer takes it. The loop owns it;
// the writer has the other end of jobs.
type outbox struct {
	jobs     chan job      // has room for one
	alive    chan struct{} // the same
	sequence uint64        // of the newest job
	// handedOut is its change; nil: there is none that may still land.
	handedOut *taints.Change
	// announcements of evictions that the writer makes before the taints.
	announcements []announcement
	// refused is what the API server said to the newest write, if it refused it.
	refused string
}

// job is a change to write, and the Node on which it was decided.
type job struct {
	sequence uint64
	base     *taints.Node
	change   taints.Change
	// announce is told before the change is made, if that evicts.
	announce []announcement
}

// isWithdrawal reports whether the job is to write nothing.
func (j job) isWithdrawal() bool { return j.base == nil }

// isUrgent reports whether the change is more than a refresh of our conditions.
func (j job) isUrgent() bool {
	_, differs := j.change.Differs(j.base)
	return differs
}

// announcement of an eviction. The time tells it from another with the same
// words.
type announcement struct {
	reason, message string
	at              time.Time
}

// result is what became of a job. node is the newest version seen, or nil.
type result struct {
	sequence uint64
	node     *taints.Node
	err      error
	// isRestored: the Node is older than the one that the job was decided on.
	isRestored bool
}

func newOutbox() *outbox { return &outbox{jobs: make(chan job, 1), alive: make(chan struct{}, 1)} }

// put hands the newest change out, unless that was done already. A change that
// the writer has not begun with is replaced.
func (o *outbox) put(base *taints.Node, change taints.Change) {
	if o.handedOut != nil && brings(*o.handedOut, change, base) {
		return
	}
	o.discard()
	o.sequence++
	o.handedOut = &change
	o.jobs <- job{o.sequence, base, change, slices.Clone(o.announcements)}
}

// brings reports whether a change that was handed out does all that a newer one asks
// for, which was decided on base. As soon as the taints stand there, they are owned in
// the newer change. The conditions that follow the taints are not written twice for
// that.
func brings(handedOut, newer taints.Change, base *taints.Node) bool {
	if _, differs := newer.Differs(base); !differs {
		handedOut.Owned = newer.Owned
	}
	return reflect.DeepEqual(handedOut, newer)
}

// discard takes back what the writer has not begun with. The same change may be
// put again.
func (o *outbox) discard() {
	o.handedOut = nil
	select {
	case <-o.jobs:
	default:
	}
}

// withdraw takes back the newest change although the writer may have begun with
// it: a writer that waits before its next try, or joins changes, then has nothing
// to write.
func (o *outbox) withdraw() {
	o.discard()
	o.jobs <- job{}
}

// signOfLife tells a writer that waits before its next try that the API server
// answers.
func (o *outbox) signOfLife() {
	select {
	case o.alive <- struct{}{}:
	default: // told already
	}
}

// allowRepeat lets the next change say the same as the one before, as a
// heartbeat does.
func (o *outbox) allowRepeat() { o.handedOut = nil }

// announce has the writer tell of an eviction before the taint is set. One of the
// same reason that was not told yet is about an eviction that never came. Many of
// them would hold the taint up: each may take as long as announceTimeout.
func (o *outbox) announce(a announcement) {
	o.announcements = slices.DeleteFunc(slices.Clone(o.announcements), func(before announcement) bool { return before.reason == a.reason })
	o.announcements = append(o.announcements, a)
}

// settle takes in what became of a job and reports whether the newest change is
// on the Node. evictionIsDue reports whether a taint that was announced is yet
// to come.
func (o *outbox) settle(r result, evictionIsDue func(*taints.Node) bool) bool {
	switch {
	case r.err == nil:
		o.refused = ""
	case pace.IsRefusal(r.err):
		o.refused = r.err.Error()
	}
	if r.sequence != o.sequence {
		return false
	}
	if r.err == nil && !evictionIsDue(r.node) {
		o.announcements = nil
	}
	if errors.Is(r.err, apiserver.ErrOvertaken) {
		o.handedOut = nil // decided anew on the newer Node
	}
	return r.err == nil
}
