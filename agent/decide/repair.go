package decide

import (
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// repairRest is how long that condition stays False once it has become False, so that its
// status changes at most twice an hour. The minute is for writes that are late.
const repairRest = time.Hour + time.Minute

// next takes in a sample. Before it the condition's evidence was that of d.
func (f fault) next(c Condition, d Debouncer, o probes.Observation, now time.Time) fault {
	seen, gap := classOf(o), now.Sub(d.seenAt)
	isGap := !d.seenAt.IsZero() && gap > maxGap
	switch {
	case seen == none:
		return f
	case seen >= bad && slices.Contains(c.Repairable, o.Reason):
		if f.since.IsZero() || isGap && !f.needed {
			f = fault{since: now}
		}
		f.reason, f.samples, f.isGood, f.goodFor = o.Reason, min(f.samples+1, c.Debounce.BadSamples), false, 0
		return f
	case seen == between:
		f.isGood, f.goodFor = false, 0
		return f
	case !f.needed:
		return fault{}
	}
	if f.isGood && !isGap && d.unknownSince.IsZero() {
		f.goodFor += gap
	}
	if f.isGood = true; f.goodFor >= c.Debounce.ClearAfter.Duration {
		return fault{}
	}
	return f
}

// forget returns the fault without its evidence.
func (f fault) forget() fault {
	if !f.needed {
		return fault{}
	}
	return fault{reason: f.reason, since: f.since, needed: true}
}

// needsRepair returns the first condition with a fault that makes the host need a repair.
func (s *State) needsRepair() *condition {
	for i := range s.conditions {
		if s.conditions[i].fault.needed {
			return &s.conditions[i]
		}
	}
	return nil
}

// judgeRepair decides whether the host needs a repair. The newest sample must find the
// fault, and as many in a row as set the condition: whatever the record says, this process
// has seen it. What half of the fleet has is not for repairers.
func (s *State) judgeRepair(t *turn) {
	for i := range s.conditions {
		c := &s.conditions[i]
		if s.pause.observes(c.name) { // a repairer would reboot the host
			c.fault.needed = false
			continue
		}
		due, isPending := s.repairDue(t, c)
		isSeen := c.fault.samples >= t.policy.debounce(c.name).BadSamples
		if isPending && isSeen && !c.debounce.seenAt.Before(due) && !s.isFaultBraked(t, c) {
			c.fault.needed = true
		}
	}
	shown := t.in.Node.Condition(RepairType)
	if s.needsRepair() == nil && shown != nil && shown.Status == taints.ConditionTrue && t.now.Sub(s.hostRepair.endedAt) >= time.Minute {
		s.hostRepair.endedAt = t.now
	}
}

// repairDue returns when the host needs a repair, if each sample finds the condition's
// fault until then; false: nothing points there.
func (s *State) repairDue(t *turn, c *condition) (time.Time, bool) {
	f := &c.fault
	if f.needed || f.samples == 0 || classOf(c.last) < bad || c.last.Reason != f.reason || c.debounce.Level <= probes.OK {
		return time.Time{}, false
	}
	due := f.since.Add(t.policy.RepairAfter)
	if !s.hostRepair.endedAt.IsZero() && s.needsRepair() == nil {
		due = later(due, s.hostRepair.endedAt.Add(repairRest))
	}
	return due, true
}

// isFaultBraked reports whether so many peers have the condition that its fault is hardly
// the host's own.
func (s *State) isFaultBraked(t *turn, c *condition) bool {
	held, _ := s.brake(t, c)
	return held != ""
}

// restoreRepair takes over what the Node says of a repair. The record alone makes the host
// need none: it only says since when a fault has been there, and that counts while the
// Node's condition of the fault has been True and was written a short time ago.
func (s *State) restoreRepair(t *turn) {
	node, r := t.in.Node, t.in.Node.record
	shown := node.Condition(RepairType)
	s.hostRepair = hostRepair{endedAt: r.timeline(s.boot, t.now).past(r.RepairEndedAt)}
	if shown != nil && shown.Status == taints.ConditionFalse && shown.Reason == describe.ReasonCooldown {
		s.hostRepair.endedAt = later(s.hostRepair.endedAt, earlier(shown.LastTransitionTime, t.now))
	}
	for i := range s.conditions {
		c := &s.conditions[i]
		policy, _ := t.policy.Condition(c.name)
		since := s.recordedFault(t, c)
		if slices.Contains(policy.Repairable, shownReason(shown)) {
			if c.fault.since = since; since.IsZero() {
				c.fault.since = earlier(shown.LastTransitionTime, t.now)
			}
			c.fault.reason, c.fault.needed = shown.Reason, true
		} else if c.debounce.class != clear && !since.IsZero() && (c.fault.since.IsZero() || since.Before(c.fault.since)) {
			c.fault.since = since
		}
	}
}

// recordedFault returns since when a fault has been there, as far as the record can be
// believed; zero: that is not known.
func (s *State) recordedFault(t *turn, c *condition) time.Time {
	r, stands := t.in.Node.record, t.in.Node.Condition(ConditionType(c.name))
	recorded := r.Conditions[c.name].FaultSince
	if recorded == 0 || r.Boot != s.boot.ID || stands == nil || stands.Status != taints.ConditionTrue ||
		t.now.Sub(stands.LastHeartbeatTime) >= maxGap+t.policy.Heartbeat {
		return time.Time{}
	}
	return earlier(later(s.boot.At.Add(recorded), stands.LastTransitionTime), t.now)
}

// shownReason is the reason for which a Node says that its host needs a repair; empty: it
// does not.
func shownReason(shown *taints.NodeCondition) string {
	if shown == nil || shown.Status != taints.ConditionTrue {
		return ""
	}
	return shown.Reason
}

// describeRepair returns what the Node's condition is rendered from.
func (s *State) describeRepair(t *turn) describe.Repair {
	var d describe.Repair
	if at := s.hostRepair.endedAt; !at.IsZero() && t.now.Before(at.Add(repairRest)) {
		d.Rested = at.Add(repairRest)
	}
	if c := s.needsRepair(); c != nil {
		d = describe.Repair{Needed: true, Kind: ConditionType(c.name), Reason: c.fault.reason, Since: c.fault.since}
		if c.fault.isGood && c.debounce.unknownSince.IsZero() {
			d.Next = c.debounce.seenAt.Add(t.policy.debounce(c.name).ClearAfter.Duration - c.fault.goodFor)
		}
		return d
	}
	for i := range s.conditions {
		c := &s.conditions[i]
		if due, isPending := s.repairDue(t, c); isPending {
			d.Kind, d.Reason, d.Since, d.Next = ConditionType(c.name), c.fault.reason, c.fault.since, due
			d.Braked, d.Observed = s.isFaultBraked(t, c), s.pause.observes(c.name)
			return d
		}
	}
	return d
}

// repairDifference is how that differs from what the Node shows.
func (s *State) repairDifference(t *turn) difference {
	now, stands := s.describeRepair(t), t.in.Node.Condition(RepairType)
	if s.hostRepair.shown == nil && stands != nil {
		if next := now.Node(RepairType, t.now); stands.Status == next.Status && stands.Reason == next.Reason && stands.Message == next.Message {
			s.hostRepair.shown = &now
		}
	}
	if s.hostRepair.shown == nil || s.hostRepair.shown.Needed != now.Needed {
		return difference{isNew: true}
	}
	differs := stands == nil || (stands.Status == taints.ConditionTrue) != now.Needed || !now.ReadsLike(*s.hostRepair.shown)
	return difference{differs: differs, isOfBad: differs && (now.Needed || stands == nil || stands.Status == taints.ConditionTrue)}
}

// NeedsRepair reports whether a condition has a fault for which the host needs a repair.
func (s *State) NeedsRepair(name probes.Condition) bool {
	return s.known(name).fault.needed
}
