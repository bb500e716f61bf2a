package decide

import (
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// gate says what keeps a condition from a level or, where the level is decided, the taint
// of its rule from the Node, and when that is over. Step decides by it, and people are
// told the same.
func (s *State) gate(t *turn, c *condition, level probes.Level) (describe.Hold, time.Time) {
	switch {
	case level == probes.OK:
		return s.tokenGate(t, c)
	case c.debounce.Level >= level:
		return s.ruleGate(t, c, level)
	case level == probes.Degraded:
		return s.brakeGate(t, c)
	}
	if held, until := s.evictionGate(t, c); held != "" {
		return held, until
	}
	return s.tokenGate(t, c)
}

// ruleGate says what keeps the taints of a level that is decided from the Node.
func (s *State) ruleGate(t *turn, c *condition, level probes.Level) (describe.Hold, time.Time) {
	for i := range t.policy.Rules {
		rule := &t.policy.Rules[i]
		if rule.Level != level || !c.isFor(rule) {
			continue
		}
		if held, until := s.gateOf(t, c, rule); held != "" {
			return held, until
		}
	}
	return "", time.Time{}
}

// gateOf says what keeps the taint of one rule, whose level is decided, from the Node.
func (s *State) gateOf(t *turn, c *condition, rule *Rule) (describe.Hold, time.Time) {
	dispute := c.disputeOf(rule.Level)
	if held, until := dispute.holds(); held != "" {
		return held, until
	}
	if rule.Clear == ClearManual && c.manual == acknowledged {
		return describe.HeldAcknowledged, time.Time{}
	}
	d := s.asItStands(t.in.Node, place(rule, *dispute, t.in.Facts))
	if held, until := s.taintGate(t, d); held != "" || t.in.Node.Has(d.Pair) {
		return held, until
	}
	return s.setAgainGate(t)
}

// taintGate says what keeps a taint from being desired that is not on the Node yet.
func (s *State) taintGate(t *turn, d DesiredTaint) (describe.Hold, time.Time) {
	switch {
	case t.in.Node.Has(d.Pair):
		return "", time.Time{}
	case d.Pair.Effect == taints.NoExecute && t.in.Slot != SlotHeld:
		return describe.HeldEvictionSlot, time.Time{}
	case s.pause.isEnding(d.Condition):
		return describe.HeldWriteBudget, s.budget.nextAt(t.policy.WriteBudget)
	case s.pause.has(d.Condition):
		return s.pause.holds(d.Condition), time.Time{}
	}
	return "", time.Time{}
}

// setAgainGate says what keeps a decision that has landed from being written again,
// because somebody undid a part of it.
func (s *State) setAgainGate(t *turn) (describe.Hold, time.Time) {
	if next := s.budget.nextAt(t.policy.WriteBudget); s.ledger.hasLanded() && t.now.Before(next) {
		return describe.HeldWriteBudget, next
	}
	return "", time.Time{}
}
