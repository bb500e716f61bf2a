package decide

import (
	"slices"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/taints"
)

// countLosses notes, once for each time that it was written, which of our
// pairs somebody removed from the Node, whatever else is being decided. What a
// person removes while the condition is paused is not disputed: they have
// already said that they decide. Nor is what goes during maintenance. A NoExecute taint is vetoed even so: it must
// not return when the pause ends.
func (s *State) countLosses(t *turn) {
	l, node := &s.ledger, t.in.Node
	for _, d := range l.desired {
		if d.IsSoft() {
			continue // followSoft counts these
		}
		pair := d.Pair
		isPaused := s.pause.has(d.Condition) && pair.Effect != taints.NoExecute && !d.manual
		if !slices.Contains(l.owned, pair) || slices.Contains(l.lost, pair) || node.Has(pair) || isPaused {
			continue
		}
		l.lost = append(slices.Clip(l.lost), pair)
		by := node.LastWriter
		lost, count := d.Taint(), 1
		c := s.conditions.of(d.Condition)
		if d.manual && c != nil {
			s.acknowledge(t, c, d)
			continue
		}
		if c != nil { // otherwise its section was dropped from the configuration
			c.removals = oneMore(c.removals, by, t.now)
			count = c.removals.Count
		}
		t.notify(Notice{
			Kind: TaintLost, Condition: d.Condition, Taint: lost, Via: d.Via, By: by, Count: count,
			Message: describe.Lost(by, lost),
		})
		if c == nil {
			continue
		}
		dispute := c.disputeOf(d.Level)
		before := dispute.stage
		*dispute = dispute.lose(pair, d.standIn, t.now)
		if dispute.stage != before {
			t.notify(disputeNotice(d, by, dispute.stage))
		}
	}
}

// settleDisputes ends the disputes that are over.
func (s *State) settleDisputes(t *turn) {
	for _, rule := range t.policy.Rules {
		c := s.conditions.of(rule.Condition)
		dispute := c.disputeOf(rule.Level)
		*dispute = dispute.settle(c.debounce.Level, t.now)
	}
}

// disputeNotice tells people what became of the taint that somebody removed.
func disputeNotice(d DesiredTaint, by string, now stage) Notice {
	n := Notice{Condition: d.Condition}
	lost := d.Taint()
	switch {
	case now == standIn:
		n.Kind, n.Message = TaintContested, describe.Contested(by, lost, d.as(taints.StandIn, d.standIn).Taint())
	case lost.Effect == taints.NoExecute:
		n.Kind, n.Message = TaintVetoed, describe.Vetoed(by, lost)
	default:
		n.Kind, n.Message = TaintWithdrawn, describe.Withdrawn(by, lost)
	}
	return n
}
