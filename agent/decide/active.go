package decide

import (
	"errors"

	"github.com/taintlet/taintlet/agent/decide/describe"
)

// active says whether this process may decide for its Node. No other agent runs beside it, as
// it has the lock of its host. But an earlier one may have written a record that this one has
// not read yet. Or the record is a newer release's.
type active struct {
	// name is that of this process.
	name string
	// restored: a Node, and so its record, has been read. Before that evidence
	// is collected, but nothing is decided.
	restored bool
	// source is the revision of that record; 0: there was none. isSeen: a record of this
	// process was seen on the Node.
	source uint64
	isSeen bool
	// readOnly: the newest version of the Node has a newer release's record. The
	// Node is left as it is.
	readOnly bool
}

// mayTakeOver reports whether this process takes the Node over with all that its record
// remembers. It does so at the start, and when an earlier one has decided more than this one
// has read.
func (s *State) mayTakeOver(t *turn) bool {
	a, node := &s.active, t.in.Node
	if errors.Is(node.recordErr, errNewer) {
		s.leaveToNewerRelease(t)
		return false
	}
	if a.readOnly {
		a.readOnly = false
		t.notify(Notice{Kind: Active, Message: describe.RecordReadable(a.name)})
		return true
	}
	a.isSeen = a.isSeen || node.record.Instance.Name == a.name
	return !a.restored || s.isBehind(node.record)
}

// isBehind reports whether the record has decisions of others that this process has not
// taken over: it has decided nothing yet, or has decided on a version of the Node that was
// not the newest. The first answer after a start may come from an API server whose cache is behind,
// and the last write of an agent that ended may land after that answer.
func (s *State) isBehind(r record) bool {
	a := &s.active
	isLater := !a.isSeen && r.Revision != a.source && reached(r.Revision, a.source)
	return r.Revision > 0 && (s.ledger.revision == 0 || isLater)
}

// leaveToNewerRelease leaves the Node as it is while its record is a newer
// release's: this one may not undo what it does not understand. What was decided
// is of no use from here on: everything is then read from the record, as after a
// start.
func (s *State) leaveToNewerRelease(t *turn) {
	if s.active.readOnly {
		return
	}
	s.active = active{name: s.active.name, readOnly: true}
	s.ledger = ledger{uid: s.ledger.uid, policy: s.ledger.policy, policySince: s.ledger.policySince, owned: s.ledger.owned} // the record may be gone when it is over
	s.writes.pending = nil
	for i := range s.conditions {
		s.conditions[i].onset, s.conditions[i].shown, s.conditions[i].fault = onset{}, nil, fault{}
	}
	s.hostRepair = hostRepair{}
	t.notify(Notice{Kind: RecordRefused, Reason: "NewerRecord", Message: describe.RecordNewer()})
}

// observeNode takes in a version of the Node: whether it is a new object, and how much of
// what was decided has landed on it.
func (s *State) observeNode(t *turn) {
	node := t.in.Node
	if node.UID != s.ledger.uid {
		s.ledger.begin(node.UID)
		s.startup = startup{}
		for i := range s.conditions {
			s.conditions[i].shown = nil
		}
		s.hostRepair.shown = nil
	}
	s.eviction.controlPlane = isControlPlane(node.Node)
	if s.ledger.sets(node) && node.record.Instance.Name == s.active.name {
		s.ledger.setAt = t.in.NodeAt
	}
	s.ledger.land(node)
}
