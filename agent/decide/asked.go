package decide

import (
	"slices"

	"github.com/taintlet/taintlet/taints"
)

// desire decides which taints are to stand on the Node now.
func (s *State) desire(t *turn) {
	s.ledger.desired = underSlot(t.in, s.underPause(t.in.Node, s.asked(t)))
}

// asked returns the taints that the rules ask for at the decided levels. Levels
// add up: at Critical the taint of Degraded stays.
func (s *State) asked(t *turn) []desired {
	var all []desired
	for _, rule := range t.policy.Rules {
		c := s.conditions.of(rule.Condition)
		if c.debounce.Level < rule.Level {
			continue
		}
		if d, ok := place(rule, *c.disputeOf(rule.Level), t.in.Facts); ok && !isDesired(all, d.taint.Pair()) {
			all = append(all, d)
		}
	}
	return all
}

// underSlot leaves out NoExecute taints that are yet to be set while the slot is
// not certain. Everything else is written all the same.
func underSlot(in Inputs, all []desired) []desired {
	if in.Slot == SlotHeld {
		return all
	}
	return slices.DeleteFunc(all, func(d desired) bool {
		return d.taint.Effect == taints.NoExecute && !in.Node.Has(d.taint.Pair())
	})
}
