package decide

import (
	"time"

	"github.com/taintlet/taintlet/taints"
)

// Step takes in what is new and returns what to write, if anything. The same
// inputs give the same answer. Asking again before the write has landed gives
// the same Change.
func Step(policy *Policy, s State, in Inputs, now time.Time) (State, Decision) {
	t := &turn{policy: policy, in: in, now: now}
	s.conditions = s.conditions.following(policy)
	// A smaller budget of a new configuration is no decision.
	s.budget, s.ledger.decided.budget = s.budget.within(policy.WriteBudget, now), s.ledger.decided.budget.within(policy.WriteBudget, now)
	s.brake.follow(policy, now)
	if in.Node != nil {
		t.in.Facts.KeepPolicy = in.Facts.KeepPolicy && heldFits(t)
		if s.mayTakeOver(t) {
			s.restore(t)
			s.ledger.desired = s.asked(t)
			s.ledger.decided = decision{budget: s.budget, desired: s.ledger.desired}
		}
	}
	for _, o := range in.Observations {
		s.observe(t, o)
	}
	s.report.follow(in)
	s.ledger.settle(in)
	if in.Node != nil && s.active.restored {
		s.reconcile(t)
	}
	if in.Node != nil && s.active.restored {
		t.Slot = s.requestSlot(t)
		s.notifyWaiting(t)
	}
	if s.active.isStandby() {
		t.Slot = SlotOfAnother
	}
	return s, t.Decision
}

// reconcile compares what is desired with what the Node carries, and decides
// what to write.
func (s *State) reconcile(t *turn) {
	s.ledger.follow(t.policy)
	if !s.observeNode(t) {
		return
	}
	s.followPause(t)
	s.countLosses(t)
	s.settleDisputes(t)
	s.desire(t)
	landed := s.ledger.hasLanded()
	if s.isRevisionDue(t) {
		s.revise(t)
	}
	s.writeReport(t, landed)
	change := s.change(t)
	_, differs := change.Differs(t.in.Node.Node)
	isUndone := s.ledger.hasLanded() && differs // somebody undid a part of it
	s.ledger.repairWaits = isUndone && !s.repair(t)
	switch {
	case isUndone:
		if s.ledger.repairWaits {
			t.Change = s.onlyConditions(change)
			return
		}
		change = s.change(t)
	case s.ledger.hasLanded() && s.isSummaryDue(t):
		s.revise(t)
		change, differs = s.change(t), true
	}
	if differs || len(change.Conditions) > 0 {
		t.Change = &change
	} else {
		s.ledger.dropped = nil
	}
}

// repair decides the same once more, because somebody undid a part of it after
// it had landed. Without a token it waits, so that no fight over a Node can
// make more writes than the budget has.
func (s *State) repair(t *turn) bool {
	var ok bool
	if s.budget, ok = s.budget.take(t.policy.WriteBudget, t.now); ok {
		s.revise(t)
	}
	return ok
}

// onlyConditions is the part of a change that tells people why nothing else is
// written; nil for none.
func (s *State) onlyConditions(change taints.Change) *taints.Change {
	if len(change.Conditions) == 0 || s.ledger.unrecorded {
		return nil // without its record a change has landed once it was written
	}
	return &taints.Change{Conditions: change.Conditions}
}
