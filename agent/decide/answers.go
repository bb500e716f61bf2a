package decide

import (
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
)

// WhyNotWriting says why this agent does not write the Node; empty when it does.
func (s *State) WhyNotWriting() string {
	if s.active.readOnly {
		return "the record on the Node was written by a newer release"
	}
	return ""
}

// WhyNoNewTaint returns the cause that stops new taints of a condition, as a text; empty: there is
// none.
func (s *State) WhyNoNewTaint(name probes.Condition) string {
	if s.known(name).isObserved() {
		if would := s.would(s.known(name)); would != "" {
			return describe.WouldSet(would)
		}
		return ""
	}
	return describe.NoNewTaint(s.known(name).stopped)
}

// IsObserved reports whether no taint of a condition is to be on the Node.
func (s *State) IsObserved(name probes.Condition) bool { return s.known(name).isObserved() }

// Level is the level that was decided for a condition.
func (s *State) Level(name probes.Condition) probes.Level {
	return s.known(name).debounce.Level
}

// known returns a condition. If the State has no condition of that name, it returns an OK one.
func (s *State) known(name probes.Condition) *condition {
	if c := s.conditions.of(name); c != nil {
		return c
	}
	return &condition{debounce: Debouncer{Level: probes.OK}}
}

// DesiredTaints returns the taints that are desired now. The list is replaced with the
// next Step, never changed.
func (s *State) DesiredTaints() []DesiredTaint { return s.ledger.desired }

// TokensLeft returns how many tokens the emptiest bucket has.
func (s *State) TokensLeft(policy *Policy, now time.Time) int {
	left := s.upkeep.left(policy.Upkeep, now)
	for i := range s.conditions {
		left = min(left, s.conditions[i].budget.left(policy.WriteBudget, now))
	}
	return left
}

// TimeToClear returns how long every further sample must be good before a condition is OK; false
// where it is OK. It includes the wait for the write budget.
func (s *State) TimeToClear(policy *Policy, name probes.Condition, now time.Time) (time.Duration, bool) {
	c := s.known(name)
	if c.debounce.Level == probes.OK {
		return 0, false
	}
	return max(0, c.clearsAt(policy, now).Sub(now)), true
}

// Since returns when a condition went from OK to Degraded; false where it is OK.
func (s *State) Since(name probes.Condition) (time.Time, bool) {
	c := s.known(name)
	if c.debounce.Level == probes.OK {
		return time.Time{}, false
	}
	return c.debounce.SetAt, true
}

// IsContested reports whether a condition's taint is missing because another client removed it.
func (s *State) IsContested(name probes.Condition) bool {
	c := s.known(name)
	return slices.ContainsFunc(c.disputes[:], dispute.isContested)
}

// The changes that a Hold keeps a condition from.
const (
	FromTaint    = "taint"
	FromEviction = "eviction"
	FromClearing = "clear"
)

// Held returns the cause that holds a condition back, and the change that it holds back, as its
// Node condition shows them; empty: there is none.
func (s *State) Held(name probes.Condition) (by describe.Hold, from string) {
	if told := s.writes.of(ConditionType(name)); told != nil && told.held != "" {
		return told.held, told.from
	}
	return "", ""
}

// Reason returns the reason in the Node condition of a condition that is not OK, is held back by
// the fleet brake, or is Unknown; empty: it is OK.
func (s *State) Reason(name probes.Condition) string {
	c := s.known(name)
	switch {
	case !c.isSeen():
		return ""
	case c.debounce.isClearing():
		return describe.ReasonRecovering
	case c.debounce.Level > probes.OK:
		if reason := c.reason(); classOf(c.last) < bad && reason != "" {
			return reason
		}
		return c.last.Reason
	case c.onset.braked != "":
		return describe.ReasonBraked
	case c.last.Level == probes.Unknown:
		return c.last.Reason
	}
	return ""
}

// Shared is the level of a condition that the peers read. It is the requested level: the decided
// one would hide from them a condition that the brake holds back. It is Unknown while the newest
// sample is Unknown, because a level that was decided up to an hour ago (unknownAfter) would brake
// other Nodes. It is also Unknown under maintenance, when a host can be in any state.
func (s *State) Shared(name probes.Condition) probes.Level {
	if c := s.known(name); s.maintenance != "" || c.isSeen() && c.last.Level == probes.Unknown {
		return probes.Unknown
	}
	return s.Requested(name)
}

// Requested is the level that a condition has, or would have without the fleet brake.
func (s *State) Requested(name probes.Condition) probes.Level {
	c := s.known(name)
	if !c.onset.since.IsZero() {
		return max(c.debounce.Level, probes.Degraded)
	}
	return c.debounce.Level
}

// Maintenance returns the type of the Node condition by which the Node is under maintenance; empty:
// it is not. Peers read it.
func (s *State) Maintenance() string { return s.maintenance }
