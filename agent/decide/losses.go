package decide

import (
	"fmt"
	"slices"

	"github.com/taintlet/taintlet/taints"
)

// countLosses notes, once for each time that it was written, which of our
// pairs somebody removed from the Node, whatever else is being decided. What a
// person removes while the condition is paused is not disputed: they have
// already said that they decide. A NoExecute taint is vetoed even so: it must
// not return when the pause ends.
func (s *State) countLosses(t *turn) {
	l, node := &s.ledger, t.in.Node
	for _, d := range l.desired {
		pair := d.taint.Pair()
		isPaused := s.pause.has(d.condition) && pair.Effect != taints.NoExecute
		if !slices.Contains(l.owned, pair) || slices.Contains(l.lost, pair) || node.Has(pair) || isPaused {
			continue
		}
		l.lost = append(slices.Clip(l.lost), pair)
		by := node.LastWriter
		lost := d.full()
		t.notify(Notice{
			Kind: TaintLost, Condition: d.condition, Taint: lost, Via: d.via, By: by, Reason: string(TaintLost),
			Message: somebody(by) + " removed " + lost.String(),
		})
		c := s.conditions.of(d.condition)
		if c == nil {
			continue // its section was dropped from the configuration
		}
		dispute := c.disputeOf(d.level)
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
func disputeNotice(d desired, by string, now stage) Notice {
	n := Notice{Condition: d.condition}
	who, lost, instead := somebody(by), d.full(), d.as(taints.StandIn, d.standIn).full()
	switch {
	case now == standIn:
		n.Kind = TaintContested
		n.Message = fmt.Sprintf("%s removed %s twice within a minute; %s takes its place for 24 h", who, lost.String(), instead.String())
	case lost.Effect == taints.NoExecute:
		n.Kind = TaintVetoed
		n.Message = fmt.Sprintf("%s removed %s; it will not be set again until the condition has been OK", who, lost.String())
	default:
		n.Kind = TaintWithdrawn
		n.Message = fmt.Sprintf("%s removed %s twice within a minute; taintlet gives way for 24 h and until the condition has been OK. To keep taints off for good, set the annotation %s on the Node; to have them again, set and remove it", who, lost.String(), taints.PausedAnnotation)
	}
	n.Reason = string(n.Kind)
	return n
}
