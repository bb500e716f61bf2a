package decide

import (
	"errors"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
)

// heartbeatsMissed is how many heartbeats may be missing before an instance
// on standby becomes active.
const heartbeatsMissed = 3

// mayTakeOver reports whether this instance takes the Node over with all that
// its record remembers. It does so at the start, and when it has decided
// nothing yet and an older instance has, or has decided more than this one has read. From standby it does so when the
// active instance has missed its heartbeats. Without heartbeats silence says
// nothing.
func (s *State) mayTakeOver(t *turn) bool {
	a, node := &s.active, t.in.Node
	if errors.Is(node.recordErr, errNewer) {
		s.leaveToNewerRelease(t)
		return false
	}
	if a.readOnly {
		a.readOnly = false
		t.notify(Notice{Kind: Active, Message: describe.RecordReadable(a.instance.Name)})
		return true
	}
	isOlder := s.isOlderThanWriter(node)
	a.isSeen = a.isSeen || node.record.Instance.Name == a.instance.Name
	if !a.isStandby() {
		return !a.restored || !isOlder && s.isBehind(node.record)
	}
	if isOlder { // perhaps than a third one
		a.other = node.record.Instance
	}
	if sign := signOfLifeOn(node.Node, t.policy); sign != a.heard {
		a.heard, a.heardAt = sign, t.now
	}
	silence := heartbeatsMissed * t.policy.Heartbeat
	if silence == 0 || t.now.Sub(a.heardAt) < silence {
		return false
	}
	t.notify(Notice{Kind: Active, Message: describe.OtherSilent(a.other.Name, a.instance.Name, silence)})
	a.other = instance{}
	return true
}

// isOlderThanWriter reports whether an instance that started after this one wrote the record
// of the Node.
func (s *State) isOlderThanWriter(node *Node) bool {
	return s.active.instance.isOlderThan(node.record.Instance, node.record.Boot == s.boot.ID)
}

// isBehind reports whether the record has decisions of others that this instance has not
// taken over: it has decided nothing yet, or has decided on a version of the Node that was
// not the newest. The first answer after a start may come from an API server whose cache is behind,
// and the last write of an agent that ended may land after that answer.
func (s *State) isBehind(r record) bool {
	a := &s.active
	isLater := !a.isSeen && r.Revision != a.source && reached(r.Revision, a.source)
	return r.Revision > 0 && (s.ledger.revision == 0 || isLater)
}

// leave makes this instance decide nothing until it takes over. What was decided
// is of no use from here on: everything is then read from the record, as after a
// start.
func (s *State) leave(next active) {
	next.instance = s.active.instance
	s.active = next
	s.ledger = ledger{uid: s.ledger.uid, policy: s.ledger.policy, policySince: s.ledger.policySince}
	s.writes.pending = nil
	for i := range s.conditions {
		s.conditions[i].onset, s.conditions[i].shown, s.conditions[i].fault = onset{}, nil, fault{}
	}
	s.hostRepair = hostRepair{}
}

// leaveToNewerRelease leaves the Node as it is while its record is a newer
// release's: this one may not undo what it does not understand.
func (s *State) leaveToNewerRelease(t *turn) {
	if s.active.readOnly {
		return
	}
	owned := s.ledger.owned
	s.leave(active{readOnly: true})
	s.ledger.owned = owned // the record may be gone when it is over
	t.notify(Notice{Kind: RecordRefused, Reason: "NewerRecord", Message: describe.RecordNewer()})
}

// standBy leaves the Node to the newer instance that wrote its record.
func (s *State) standBy(t *turn) {
	node := t.in.Node
	s.leave(active{other: node.record.Instance, heard: signOfLifeOn(node.Node, t.policy), heardAt: t.now})
	t.notify(Notice{Kind: Standby, Message: describe.Standby(s.active.other.Name, s.active.instance.Name, heartbeatsMissed)})
}

// observeNode takes in a version of the Node: whether it is a new object, how much of
// what was decided has landed on it, whether another instance is active for
// it. It reports whether the Node may be written.
func (s *State) observeNode(t *turn) bool {
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
	if s.isOlderThanWriter(node) {
		s.standBy(t)
		return false
	}
	if s.ledger.sets(node) && node.record.Instance.Name == s.active.instance.Name {
		s.ledger.setAt = t.in.NodeAt
	}
	s.ledger.land(node)
	return true
}

// instance is one run of the agent. A Node may have several agents: a second
// DaemonSet, a run by hand, a pod that is being replaced. The instance that
// started last is active and writes the Node; the others are on standby.
type instance struct {
	Name string `json:"name"`
	// Term is one more than the term that the instance found in the record when
	// it started. So it tells who started later without comparing clocks, and
	// the record of an instance that was killed locks nobody out.
	Term uint64 `json:"term"`
	// StartedAt decides between two that found no record: time since boot.
	StartedAt time.Duration `json:"startedAt"`
}

// signOfLife changes whenever the active agent writes its Node.
type signOfLife struct {
	record    string
	heartbeat time.Time
}

// active says whether this instance writes the Node.
type active struct {
	instance instance
	// restored: a Node, and so its record, has been read. Before that evidence
	// is collected, but nothing is decided.
	restored bool
	// source is the revision of that record; 0: there was none. isSeen: a record of this
	// instance was seen on the Node.
	source uint64
	isSeen bool
	// readOnly: the newest version of the Node has a newer release's record. The
	// Node is left as it is.
	readOnly bool
	// other is the newer instance that is active; no name: there is none.
	other instance
	// heard is the other's newest sign of life, heardAt when it was seen.
	heard   signOfLife
	heardAt time.Time
}

func (a active) isStandby() bool { return a.other.Name != "" }

// isOlderThan reports whether the other instance started after this one. Terms are
// compared round the clock (RFC 1982), so that a forged one cannot be the last.
// isSameBoot: it wrote in this boot of the host, so the time since boot tells.
func (i instance) isOlderThan(other instance, isSameBoot bool) bool {
	if other.Name == "" || other.Name == i.Name {
		return false
	}
	if later := int64(other.Term - i.Term); later != 0 { //nolint:gosec // the wrap is meant
		return later > 0
	}
	if isSameBoot && other.StartedAt != i.StartedAt {
		return other.StartedAt > i.StartedAt
	}
	return other.Name > i.Name // on two hosts no clock decides
}
