package decide

import (
	"slices"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/taints"
)

// followPause takes over what the Node says of a pause and tells people. A pause
// begins at once. One ends with a token of the write budget, so that somebody
// who pauses and resumes all the time cannot make a write of each.
func (s *State) followPause(t *turn) {
	next := parsePause(t.in.Node.Annotations[taints.PausedAnnotation], t.policy)
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
			s.pause.ending = slices.DeleteFunc(slices.Clone(s.pause.conditions), next.has)
			return
		}
		forgiven = s.forgive(next)
	}
	s.pause = next
	n := Notice{Kind: Paused, Message: describe.Paused(next.String(), next.unreadable)}
	if len(next.conditions) == 0 {
		n.Kind, n.Message = Resumed, describe.Resumed(forgiven)
	}
	t.notify(n)
}

// forgive ends the contests of the conditions whose pause is over with the next
// one. Who ends a pause has decided anew, and it is the one way in which a person
// can end a contest. A veto stays: nobody evicts by mistake.
func (s *State) forgive(next pause) (forgiven bool) {
	for i := range s.conditions {
		c := &s.conditions[i]
		if !s.pause.has(c.name) || next.has(c.name) {
			continue
		}
		for j := range c.disputes {
			if d := &c.disputes[j]; d.stage != asRuled && !d.until.IsZero() {
				*d, forgiven = dispute{}, true
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
