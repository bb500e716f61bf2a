package decide

import (
	"cmp"
	"slices"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Step takes in new inputs and returns the write that follows from them, if any. The same arguments
// give the same result. Until the write has landed, each further call returns the same Decision.
func Step(policy *Policy, s State, in Inputs, now time.Time) (State, Decision) {
	t := &turn{policy: policy, in: in, now: now}
	s.conditions = s.conditions.following(policy, now)
	s.upkeep = s.upkeep.within(policy.Upkeep, now)
	s.ledger.follow(policy, now)
	t.in.NodeAt = cmp.Or(in.NodeAt, now)
	if in.Node != nil {
		takesOver := s.mayTakeOver(t)
		if takesOver {
			s.restore(t)
		}
		s.followKeep(t)
		if takesOver {
			s.ledger.desired = s.asked(t)
			s.ledger.decided, s.ledger.isChanged, s.ledger.isOurs = s.memory(), false, false
		}
	}
	if in.Node != nil && s.active.restored {
		s.followPause(t) // before the samples: what is paused does not become critical
	}
	for _, o := range in.Observations {
		s.observe(t, o)
	}
	s.writes.follow(in)
	s.ledger.settle(in, s.active.name, now)
	if in.Node != nil && s.active.restored {
		s.judgeRepair(t)
		s.reconcile(t)
		t.Slot = s.requestSlot(t)
		s.notifyWaiting(t)
	}
	return s, t.Decision
}

// reconcile compares the desired state with the Node, and decides what to write.
func (s *State) reconcile(t *turn) {
	s.observeNode(t)
	s.followStartup(t)
	s.followLatches(t)
	s.countLosses(t)
	s.settleDisputes(t)
	s.desire(t)
	landed := s.ledger.hasLanded()
	if s.isRevisionDue(t) {
		s.revise(t)
	}
	s.writeConditions(t, landed)
	desired, differs := s.desired(t)
	isUndone := s.ledger.hasLanded() && differs // somebody undid a part of it
	if isUndone && !s.upkeep.take(t.policy.Upkeep, t.now) {
		// Without a token it waits, so that no fight over a Node can make more writes than the budget
		// has. The conditions say so, unless their write counts as that of a record without room.
		if len(desired.Conditions) > 0 && !s.ledger.unrecorded {
			t.Desired = &taints.Desired{Conditions: desired.Conditions}
		}
		return
	}
	if isUndone || s.ledger.hasLanded() && s.isSummaryDue(t) {
		s.revise(t)
		desired, differs = s.desired(t)
	}
	if differs || len(desired.Conditions) > 0 {
		t.Desired = &desired
	} else {
		s.ledger.dropped = nil
	}
}

// Forget drops the evidence that was collected of a condition, because it will be judged by other
// thresholds from now on. Decisions stay, as after a restart.
func (s State) Forget(name probes.Condition) State {
	s.conditions = slices.Clone(s.conditions)
	if c := s.conditions.of(name); c != nil {
		c.debounce, c.onset, c.fault = c.debounce.forget(), onset{}, c.fault.forget()
		c.latches = slices.Clone(c.latches)
		for i := range c.latches {
			c.latches[i].Debouncer = c.latches[i].forget()
		}
	}
	return s
}
