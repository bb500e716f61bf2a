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

// fault is trouble of one condition that a repair of the host cures. It is Degraded from the
// first sample that finds it, and Critical once it has been there for so long that the host
// needs a repair. It is about samples: damping, the write budget and a pause of its condition do
// not make it longer.
type fault struct {
	Debouncer
	reason string // of the newest sample that found it
}

// next takes in a sample. A first good one ends what needs no repair yet.
func (f fault) next(c Condition, o probes.Observation, now time.Time) fault {
	isFound := classOf(o) >= bad && slices.Contains(c.Repairable, o.Reason)
	switch {
	case isFound:
		o.Level, f.reason = probes.Degraded, o.Reason
	case o.Level > probes.OK: // trouble of another kind
		o.Level, o.Hysteresis = probes.OK, false
	}
	isAnew := f.Level <= probes.OK || f.Level == probes.Degraded && !f.seenAt.IsZero() && now.Sub(f.seenAt) > maxGap
	f.Debouncer = f.Next(o, now)
	switch {
	case isFound && isAnew:
		f.Level, f.SetAt = probes.Degraded, now
	case f.isClearing() && (f.Level == probes.Degraded || f.held >= c.Debounce.ClearAfter.Duration):
		f.Level, f.SetAt = probes.OK, time.Time{}
	}
	return f
}

// forget returns the fault without its evidence.
func (f fault) forget() fault {
	if f.Level < probes.Critical {
		return fault{}
	}
	return fault{f.Debouncer.forget(), f.reason}
}

// needsRepair returns the first condition with a fault that makes the host need a repair.
func (s *State) needsRepair() *condition {
	for i := range s.conditions {
		if s.conditions[i].fault.Level == probes.Critical {
			return &s.conditions[i]
		}
	}
	return nil
}

// judgeRepair decides whether the host needs a repair. The newest sample must find the fault, and
// as many in a row as set the condition: the record alone proves nothing, this process has seen it.
// A fault of half of the fleet is not for repairers.
func (s *State) judgeRepair(t *turn) {
	for i := range s.conditions {
		c := &s.conditions[i]
		if c.isObserved() { // a repairer would reboot the host
			c.fault.Level = min(c.fault.Level, probes.Degraded)
			continue
		}
		due, isPending := s.repairDue(t, c)
		row := uint32(1)<<t.policy.debounce(c.name).BadSamples - 1
		if isPending && c.fault.window&row == row && !c.fault.seenAt.Before(due) && s.brake(t, c) == "" {
			c.fault.Level = probes.Critical
		}
	}
	shown := t.in.Node.Condition(RepairType)
	if s.needsRepair() == nil && shown != nil && shown.Status == taints.ConditionTrue && t.now.Sub(s.repairEndedAt) >= time.Minute {
		s.repairEndedAt = t.now
	}
}

// repairDue returns when the host needs a repair, if each sample finds the condition's
// fault until then; false: nothing points there.
func (s *State) repairDue(t *turn, c *condition) (time.Time, bool) {
	f := &c.fault
	if f.Level != probes.Degraded || f.class != bad || !f.unknownSince.IsZero() || c.debounce.Level <= probes.OK {
		return time.Time{}, false
	}
	due := f.SetAt.Add(t.policy.RepairAfter)
	if !s.repairEndedAt.IsZero() && s.needsRepair() == nil {
		due = later(due, s.repairEndedAt.Add(repairRest))
	}
	return due, true
}

// restoreRepair takes over what the Node says of a repair. The record alone makes the host need
// none. It only says since when a fault has been there. That counts if the Node's condition of the
// fault has been True since then and was written a short time ago.
func (s *State) restoreRepair(t *turn) {
	node, r := t.in.Node, t.in.Node.record
	shown := node.Condition(RepairType)
	s.repairEndedAt = earlier(r.times(s.boot)(r.RepairEndedAt), t.now)
	if shown != nil && shown.Status == taints.ConditionFalse && shown.Reason == describe.ReasonCooldown {
		s.repairEndedAt = later(s.repairEndedAt, earlier(shown.LastTransitionTime, t.now))
	}
	for i := range s.conditions {
		c := &s.conditions[i]
		policy, _ := t.policy.Condition(c.name)
		since := s.recordedFault(t, c)
		if shown != nil && shown.Status == taints.ConditionTrue && slices.Contains(policy.Repairable, shown.Reason) {
			if c.fault.SetAt = since; since.IsZero() {
				c.fault.SetAt = earlier(shown.LastTransitionTime, t.now)
			}
			c.fault.reason, c.fault.Level = shown.Reason, probes.Critical
		} else if c.debounce.class != clear && !since.IsZero() && (c.fault.SetAt.IsZero() || since.Before(c.fault.SetAt)) {
			c.fault.SetAt, c.fault.Level = since, probes.Degraded
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

// describeRepair returns what the Node's condition is rendered from.
func (s *State) describeRepair(t *turn) describe.Repair {
	var d describe.Repair
	if at := s.repairEndedAt; !at.IsZero() && t.now.Before(at.Add(repairRest)) {
		d.Rested = at.Add(repairRest)
	}
	if c := s.needsRepair(); c != nil {
		d = describe.Repair{Needed: true, Kind: ConditionType(c.name), Reason: c.fault.reason, Since: c.fault.SetAt}
		if c.fault.isClearing() {
			d.Next = c.fault.goodAt(t.policy.debounce(c.name), t.now)
		}
		return d
	}
	for i := range s.conditions {
		c := &s.conditions[i]
		if due, isPending := s.repairDue(t, c); isPending {
			d.Kind, d.Reason, d.Since, d.Next = ConditionType(c.name), c.fault.reason, c.fault.SetAt, due
			d.Braked, d.Observed = s.brake(t, c) != "", c.isObserved()
			return d
		}
	}
	return d
}

// NeedsRepair reports whether a condition has a fault for which the host needs a repair.
func (s *State) NeedsRepair(name probes.Condition) bool {
	return s.known(name).fault.Level == probes.Critical
}
