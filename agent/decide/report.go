package decide

import (
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// follow takes in that the conditions were written, and that a heartbeat is due.
func (r *conditionWrites) follow(in Inputs) {
	if in.Written {
		r.pending = nil
	}
	r.refresh = r.refresh || in.Refresh
}

// areConditionsDue reports whether the conditions are to be written: for their heartbeat, for
// what they have to say at once, or for a difference whose turn it is. landed: the Node had the
// last decision when this Step began. The mere value of a condition that is OK waits
// for the heartbeat. A suspicion that begins is reported at once, since others decide by
// it. Every other difference waits until the last report is written, and then for its turn.
func (s *State) areConditionsDue(t *turn, landed bool) bool {
	r, all := &s.writes, difference{isNew: s.writes.refresh}.and(s.repairDifference(t))
	for i := range s.conditions {
		all = all.and(s.differenceOf(t, &s.conditions[i]))
	}
	if all.isNew || !t.Adopted.IsZero() {
		return all.isNew
	}
	isTurn := func(reports int) bool { return t.now.Sub(r.updates[reports-1]) >= updatesWithin }
	mayWrite := len(r.pending) == 0 && landed
	isDue := all.isUrgent || mayWrite && (all.isOfBad && isTurn(updatesEach) || all.differs && isTurn(1))
	if !isDue {
		return false
	}
	copy(r.updates[1:], r.updates[:])
	r.updates[0] = t.now
	return true
}

func (s *State) differenceOf(t *turn, c *condition) difference {
	if c.shown == nil {
		return difference{isNew: !s.adopt(t, c)}
	}
	shown := c.shown
	if shown.level != c.debounce.Level || shown.since != c.since || shown.unrecorded != s.ledger.unrecorded {
		return difference{isNew: true}
	}
	if t.in.Node.Condition(ConditionType(c.name)) == nil {
		return difference{differs: true, isOfBad: true} // somebody removed it
	}
	if s.isQuiet(t, c) {
		return difference{} // as almost always
	}
	now := s.outlook(t, c)
	differs := !now.ReadsLike(shown.Outlook) || c.isFalse(t.now)
	return difference{
		differs:  differs,
		isOfBad:  c.debounce.Level > probes.OK && differs || s.isStale(c, t.now) || c.hasMoved(shown.severity),
		isUrgent: now.Suspicion != "" && shown.Suspicion == "",
	}
}

// isQuiet reports whether a condition says no more than its value, as on the Node.
func (s *State) isQuiet(t *turn, c *condition) bool {
	return !c.saysMore() && c.softShown(t.policy) == "" && !s.IsStarting() && c.shown.Outlook == (describe.Outlook{}) && c.falseSince.IsZero()
}

// isStale reports whether the Node tells a value of a condition that is not OK for longer than
// people may take it for the present one.
func (s *State) isStale(c *condition, now time.Time) bool {
	if c.debounce.Level <= probes.OK || c.last.Level == probes.Unknown || c.shown.value == c.last.Message {
		return false
	}
	hash := fnv.New32a()
	hash.Write([]byte(s.active.name)) // what a fleet has at once, it does not tell anew at once
	return now.Sub(c.shown.at) >= staleAfter+time.Duration(hash.Sum32())*time.Microsecond%staleSpread
}

// adopt takes what the Node says of a condition for shown, where this process would
// only say the same again, and reports whether it did. So a restart costs one write,
// that of the record, and the heartbeat goes on from the time that stands there. As
// between two heartbeats, the value, with which a message begins, may be older than the
// newest sample. A time in the future is none of this boot's.
func (s *State) adopt(t *turn, c *condition) bool {
	stands := t.in.Node.Condition(ConditionType(c.name))
	if stands == nil || t.now.Sub(stands.LastHeartbeatTime) >= t.policy.Heartbeat || stands.LastHeartbeatTime.After(t.now.Add(time.Second)) {
		return false
	}
	o := s.outlook(t, c)
	next := s.describe(t, c, o, c.last).Node(ConditionType(c.name), t.now)
	if stands.Status != next.Status || stands.Reason != next.Reason || !strings.HasSuffix(stands.Message, strings.TrimPrefix(next.Message, c.last.Message)) {
		return false
	}
	s.show(c, o, c.last, t.now)
	if t.Adopted.IsZero() || stands.LastHeartbeatTime.Before(t.Adopted) {
		t.Adopted = stands.LastHeartbeatTime
	}
	return true
}

// show remembers what the Node's condition says.
func (s *State) show(c *condition, o describe.Outlook, reported probes.Observation, now time.Time) {
	severity := c.last.Severity
	if c.last.Level == probes.Unknown && c.shown != nil {
		severity = c.shown.severity
	}
	c.shown = &rendered{o, c.debounce.Level, c.since, severity, gistOf(reported), s.ledger.unrecorded, reported.Message, now}
}

// writeConditions renders the conditions when they are due and every probe has taken a
// sample.
func (s *State) writeConditions(t *turn, landed bool) {
	if !s.conditions.allSeen() || !s.areConditionsDue(t, landed) {
		return
	}
	t.Adopted = time.Time{} // all are written
	r := &s.writes
	r.refresh, r.pending = false, make([]taints.NodeCondition, 0, len(s.conditions)+1)
	for i := range s.conditions {
		c := &s.conditions[i]
		now, reported := s.outlook(t, c), c.reported(t.now)
		r.pending = append(r.pending, s.describe(t, c, now, reported).Node(ConditionType(c.name), t.now))
		s.show(c, now, reported, t.now)
		c.compare(t.now)
	}
	needed := s.describeRepair(t)
	s.hostRepair.shown = &needed
	r.pending = append(r.pending, needed.Node(RepairType, t.now))
}

// isSummaryDue reports whether the record does not say what the conditions say that are
// being written, or which configuration is in force. The first record comes with the
// conditions. It is asked only while the Node is as it was decided, so that nothing is
// repaired by that.
func (s *State) isSummaryDue(t *turn) bool {
	hasRecord, isWriting := s.ledger.revision != 0, len(s.writes.pending) > 0
	if s.ledger.unrecorded || t.in.Node.recordErr != nil || !hasRecord && !isWriting {
		return false
	}
	if t.in.Node.record.Config != t.policy.Hash {
		return true
	}
	return hasRecord && isWriting && slices.ContainsFunc(s.conditions, func(c condition) bool { return !c.summary.readsLike(c.summarize(s.outlook(t, &c), s.boot, t.now)) })
}
