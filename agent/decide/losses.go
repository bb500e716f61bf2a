package decide

import (
	"slices"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/taints"
)

// countLosses notes, once for each time that it was written, which of our
// pairs somebody removed from the Node, whatever else is being decided. What a
// person removes while the condition is paused is not disputed: they have
// already said that they decide. Nor is what goes during maintenance. A NoExecute taint is
// vetoed even so: it must not return when the pause ends. What the node-lifecycle-controller
// removes although the policy is there is nobody's decision.
func (s *State) countLosses(t *turn) {
	l, node := &s.ledger, t.in.Node
	for _, d := range l.desired {
		if d.IsSoft() {
			continue // followSoft counts these
		}
		pair := d.Pair
		isPaused := s.pause.has(d.Condition) && pair.Effect != taints.NoExecute && !d.manual
		if !slices.Contains(l.owned, pair) || slices.Contains(l.lost, pair) || node.Has(pair) {
			continue
		}
		isBroken := s.losesKept(t, d)
		if isPaused && !isBroken {
			continue
		}
		l.lost = append(slices.Clip(l.lost), pair)
		switch c := s.conditions.of(d.Condition); {
		case isBroken:
		case c == nil: // its section was dropped from the configuration
			t.notifyLost(d, node.LastWriter, 1)
		case d.manual:
			s.acknowledge(t, c, d)
		default:
			c.lose(t, d, c.disputeOf(d.Level))
		}
	}
	t.in.Facts.KeepPolicy = t.in.Facts.KeepPolicy && !s.IsKeepFailing()
}

// lose counts that somebody removed a taint of the condition, and how far its rule gives way.
func (c *condition) lose(t *turn, d DesiredTaint, dispute *dispute) {
	by, before := t.in.Node.LastWriter, dispute.conceded
	c.removals = oneMore(c.removals, by, t.now)
	t.notifyLost(d, by, c.removals.Count)
	if *dispute = dispute.lose(d.Pair, d.standIn, t.now); dispute.conceded != before {
		t.notify(disputeNotice(d, by, dispute.conceded))
	}
}

// notifyLost tells who removed a taint. It is that removal of its condition within a day.
func (t *turn) notifyLost(d DesiredTaint, by string, count int) {
	lost := d.Taint()
	t.notify(Notice{Kind: TaintLost, Condition: d.Condition, Taint: lost, Via: d.Via, By: by, Count: count, Message: describe.Lost(by, lost)})
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
func disputeNotice(d DesiredTaint, by string, now concession) Notice {
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
