package decide

import (
	"errors"
	"fmt"
	"time"

	"github.com/taintlet/taintlet/taints"
)

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

// isOlderThanWriter reports whether the record was written by an instance that
// started after this one. Terms are compared round the clock (RFC 1982), so
// that a forged one cannot be the last.
func (i instance) isOlderThanWriter(r record, boot Boot) bool {
	other := r.Instance
	if other.Name == "" || other.Name == i.Name {
		return false
	}
	if later := int64(other.Term - i.Term); later != 0 { //nolint:gosec // the wrap is meant
		return later > 0
	}
	if r.Boot == boot.ID && other.StartedAt != i.StartedAt {
		return other.StartedAt > i.StartedAt
	}
	return other.Name > i.Name // on two hosts no clock decides
}

// active says whether this instance writes the Node.
type active struct {
	instance instance
	// restored: a Node, and so its record, has been read. Before that evidence
	// is collected, but nothing is decided.
	restored bool
	// readOnly: the newest version of the Node has a newer release's record. The
	// Node is left as it is.
	readOnly bool
	// other is the newer instance that is active; no name: there is none.
	other instance
	// heard is the other's newest sign of life, heardAt when it was seen.
	heard   signOfLife
	heardAt time.Time
}

// writes reports whether this instance may write the Node.
func (a active) writes() bool { return a.restored }

func (a active) isStandby() bool { return a.other.Name != "" }

func (a active) whyNotWriting() string {
	switch {
	case a.readOnly:
		return "the record on the Node was written by a newer release"
	case a.isStandby():
		return "on standby: another agent, " + a.other.Name + ", is active for this Node"
	}
	return ""
}

// signOfLife changes whenever the active agent writes its Node.
type signOfLife struct {
	record    string
	heartbeat time.Time
}

func signOfLifeOn(node *taints.Node, policy *Policy) signOfLife {
	sign := signOfLife{record: node.Annotations[taints.RecordAnnotation]}
	for _, c := range node.Conditions {
		if isOurs(c.Type, policy) && c.LastHeartbeatTime.After(sign.heartbeat) {
			sign.heartbeat = c.LastHeartbeatTime
		}
	}
	return sign
}

// heartbeatsMissed is how many heartbeats may be missing before an instance
// on standby becomes active.
const heartbeatsMissed = 3

// mayTakeOver reports whether this instance takes the Node over with all that
// its record remembers. It does so at the start, and when it has decided
// nothing yet and an older instance has. From standby it does so when the
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
		t.tell(Notice{Kind: Active, Reason: string(Active), Message: "the record on the Node is no longer a newer release's; this agent, " + a.instance.Name + ", is active for this Node again"})
		return true
	}
	isOlder := a.instance.isOlderThanWriter(node.record, s.boot)
	if !a.isStandby() {
		return !a.restored || s.ledger.revision == 0 && node.record.Revision > 0 && !isOlder
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
	t.tell(Notice{Kind: Active, Reason: string(Active), Message: fmt.Sprintf(
		"the agent %s has been silent for %s; this one, %s, is active for this Node again", a.other.Name, durationText(silence), a.instance.Name)})
	a.other = instance{}
	return true
}

// leave makes this instance decide nothing until it takes over. What was decided
// is of no use from here on: everything is then read from the record, as after a
// start.
func (s *State) leave(next active) {
	next.instance = s.active.instance
	s.active = next
	s.ledger = ledger{uid: s.ledger.uid, policy: s.ledger.policy}
	s.report.pending = nil
	for i := range s.conditions {
		s.conditions[i].request, s.conditions[i].shown = request{}, nil
	}
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
	t.tell(Notice{Kind: RecordRefused, Reason: "NewerRecord", Message: "the record on the Node was written by a newer release of taintlet; this one leaves the Node as it is"})
}

// standBy leaves the Node to the newer instance that wrote its record.
func (s *State) standBy(t *turn) {
	node := t.in.Node
	s.leave(active{other: node.record.Instance, heard: signOfLifeOn(node.Node, t.policy), heardAt: t.now})
	t.tell(Notice{Kind: Standby, Reason: string(Standby), Message: fmt.Sprintf(
		"another agent, %s, started later than this one, %s, and is active for this Node; this one is on standby and writes nothing until the other has been silent for %d heartbeats",
		s.active.other.Name, s.active.instance.Name, heartbeatsMissed)})
}

// meet takes in a version of the Node: whether it is a new object, how much of
// what was decided has landed on it, whether another instance is active for
// it. It reports whether the Node may be written.
func (s *State) meet(t *turn) bool {
	node := t.in.Node
	if node.UID != s.ledger.uid {
		s.ledger.begin(node.UID)
		for i := range s.conditions {
			s.conditions[i].shown = nil
		}
	}
	s.eviction.controlPlane = isControlPlane(node.Node)
	if s.active.instance.isOlderThanWriter(node.record, s.boot) {
		s.standBy(t)
		return false
	}
	s.ledger.land(node)
	return true
}
