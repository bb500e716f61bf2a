package node

import (
	"time"

	"github.com/taintlet/taintlet/taints"
)

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

// Result is what became of what was handed out.
type Result struct {
	sequence uint64
	// Node is the newest version seen, or nil.
	Node *taints.Node
	// Err is why the Node does not have all of it.
	Err error
	// IsRestored: the Node is older than the one that it was decided on.
	IsRestored bool
}
