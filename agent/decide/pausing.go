package decide

import (
	"cmp"
	"slices"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
)

// followPause takes over what the Node says of a pause, or of its maintenance, and tells
// people. A pause begins at once. One ends with a token of the write budget, so that
// somebody who pauses and resumes all the time cannot make a write of each.
func (s *State) followPause(t *turn) {
	next := pauseOf(t.in.Node.Node, t.policy)
	if next.equal(s.pause) {
		s.pause.ending = nil
		return
	}
	forgiven := false
	if s.pause.endsFor(next) {
		var ok bool
		if s.budget, ok = s.budget.take(t.policy.WriteBudget, t.now); !ok {
			// What begins does not wait for what ends.
			s.pause.conditions = pause{conditions: slices.Concat(s.pause.conditions, next.conditions)}.inOrder(t.policy).conditions
			s.pause.maintenance = cmp.Or(next.maintenance, s.pause.maintenance)
			s.pause.ending = slices.DeleteFunc(t.policy.names(), func(name probes.Condition) bool { return !s.pause.has(name) || next.has(name) })
			return
		}
		forgiven = s.forgive(next)
	}
	before := s.pause
	s.pause = next
	notifyPause(t, before, next, forgiven)
}

// notifyPause tells people what stops additions from now on, or does no longer: the
// annotation, the maintenance, or both. Which of several conditions says that the Node is
// under maintenance is not told.
func notifyPause(t *turn, before, next pause, forgiven bool) {
	isByPerson, isByMaintenance := len(next.conditions) > 0, next.maintenance != ""
	switch isSame := before.unreadable == next.unreadable && slices.Equal(before.conditions, next.conditions); {
	case isSame:
	case isByPerson:
		t.notify(Notice{Kind: Paused, Message: describe.Paused(next.String(), next.unreadable)})
	default:
		t.notify(Notice{Kind: Resumed, Message: describe.Resumed(forgiven, isByMaintenance)})
	}
	switch wasByMaintenance := before.maintenance != ""; {
	case isByMaintenance == wasByMaintenance:
	case isByMaintenance:
		t.notify(Notice{Kind: Paused, Message: describe.MaintenanceBegins(next.maintenance)})
	default:
		t.notify(Notice{Kind: Resumed, Message: describe.MaintenanceEnds(before.maintenance, next.String())})
	}
}

// forgive ends the contests of the conditions whose pause by a person is over with the
// next one, and forgets a first loss. Who ends a pause has decided anew, and it is the one
// way in which a person can end a contest. A veto stays: nobody evicts by mistake.
func (s *State) forgive(next pause) (forgiven bool) {
	for i := range s.conditions {
		c := &s.conditions[i]
		if !s.pause.byPerson(c.name) || next.byPerson(c.name) {
			continue
		}
		disputes := []*dispute{&c.disputes[0], &c.disputes[1]}
		if c.soft != nil {
			disputes = append(disputes, &c.soft.dispute)
		}
		for _, d := range disputes {
			if !d.isVeto() {
				forgiven = forgiven || d.conceded != asRuled
				*d = dispute{}
			}
		}
	}
	return forgiven
}

// asItStands returns the taint as it is on the Node already, where the condition is
// paused: a pause changes nothing of what stands.
func (s *State) asItStands(node *Node, d DesiredTaint) DesiredTaint {
	if !s.pause.has(d.Condition) || node.Has(d.Pair) {
		return d
	}
	other := d.otherWay()
	if pair := other.Pair; slices.Contains(s.ledger.owned, pair) && node.Has(pair) {
		return other
	}
	return d
}
