package decide

import (
	"fmt"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/taints"
)

// instance is one run of the agent. Of several that look after one Node (a
// second DaemonSet, a run by hand, a pod that is being replaced) the one that
// started last writes, the others stand back.
type instance struct {
	Name string `json:"name"`
	// Term is one more than the term that the instance found in the record when
	// it started. So it tells who started later without comparing clocks, and
	// the record of an instance that was killed locks nobody out.
	Term uint64 `json:"term"`
	// StartedAt decides between two that found no record: time since boot.
	StartedAt time.Duration `json:"startedAt"`
}

// isOvertakenBy reports whether the record was written by an instance that
// started after this one. Terms are compared round the clock (RFC 1982), so
// that a forged one cannot be the last.
func (i instance) isOvertakenBy(r record, boot Boot) bool {
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

// standBack is what an instance knows of the newer one that it gave way to.
type standBack struct {
	by instance // no name: the Node is ours
	// heard is the newest sign of life, heardAt when it was seen.
	heard   signOfLife
	heardAt time.Time
}

// signOfLife changes whenever the agent in charge writes its Node.
type signOfLife struct {
	record    string
	heartbeat time.Time
}

func signOfLifeOn(node *Node) signOfLife {
	sign := signOfLife{record: node.Annotations[taints.RecordAnnotation]}
	for _, c := range node.Status.Conditions {
		if isOurs(c.Type) && c.LastHeartbeatTime.After(sign.heartbeat) {
			sign.heartbeat = c.LastHeartbeatTime.Time
		}
	}
	return sign
}

// heartbeatsMissed is how many heartbeats may be missing before an instance
// that stood back takes the Node over.
const heartbeatsMissed = 3

// leaveTo stands back. What was decided is of no use from here on: on taking
// over again everything is read from the record, as after a start.
func (s *State) leaveTo(node *Node, now time.Time, d *Decision) {
	s.standBack = standBack{node.record.Instance, signOfLifeOn(node), now}
	s.restored, s.compared, s.dirty = false, false, false
	s.want, s.owned, s.lost, s.dropped, s.report = nil, nil, nil, nil, nil
	s.revision, s.landed = 0, 0
	d.Notices = append(d.Notices, Notice{Kind: Overtaken, Reason: string(Overtaken), Message: fmt.Sprintf(
		"another agent, %s, started later than this one (%s) and looks after this Node; this one writes nothing until the other has been silent for %d heartbeats",
		s.standBack.by.Name, s.instance.Name, heartbeatsMissed)})
}

// mayTakeOver reports whether the Node is to be taken over with all that its
// record remembers: at the start, when this instance has decided nothing yet
// and an older one has, and when the newer one that it stood back for has
// missed its heartbeats. Without heartbeats silence says nothing.
func (s *State) mayTakeOver(cfg *config.Config, node *Node, now time.Time, d *Decision) bool {
	by := s.standBack.by.Name
	if by == "" {
		return !s.restored || s.revision == 0 && node.record.Revision > 0 && !s.instance.isOvertakenBy(node.record, s.boot)
	}
	if s.instance.isOvertakenBy(node.record, s.boot) { // perhaps by a third one
		s.standBack.by = node.record.Instance
		by = s.standBack.by.Name
	}
	if sign := signOfLifeOn(node); sign != s.standBack.heard {
		s.standBack.heard, s.standBack.heardAt = sign, now
	}
	silence := heartbeatsMissed * cfg.Heartbeat.Duration
	if silence == 0 || now.Sub(s.standBack.heardAt) < silence {
		return false
	}
	s.standBack, s.conditionsDue = standBack{}, true
	d.Notices = append(d.Notices, Notice{Kind: TookOver, Reason: string(TookOver), Message: fmt.Sprintf(
		"the agent %s has been silent for %s; this one, %s, looks after this Node again", by, silence, s.instance.Name)})
	return true
}
