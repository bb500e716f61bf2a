package decide

import (
	"slices"
	"strings"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// pause says for which conditions a person has stopped additions.
type pause struct {
	// conditions are in the configuration's order. The slice is replaced, never
	// changed.
	conditions []probes.Condition
	// unreadable is the annotation's value when it says neither "true", "false"
	// nor a list of conditions. Whoever wrote it wanted to stop something, so
	// everything is stopped.
	unreadable string
	// ending are those of the conditions whose pause is over, but for a token of the
	// write budget.
	ending []probes.Condition
}

// isEnding reports whether the pause of a condition waits for its end.
func (p pause) isEnding(name probes.Condition) bool { return slices.Contains(p.ending, name) }

func (p pause) has(name probes.Condition) bool { return slices.Contains(p.conditions, name) }

func (p pause) equals(other pause) bool {
	return p.unreadable == other.unreadable && slices.Equal(p.conditions, other.conditions)
}

// parsePause reads the annotation taintlet.dev/paused: "true", or conditions
// separated by commas.
func parsePause(value string, policy *Policy) pause {
	switch value {
	case "", "false":
		return pause{}
	case "true":
		return pause{conditions: policy.names()}
	}
	var listed []probes.Condition
	for word := range strings.SplitSeq(value, ",") {
		name := probes.Condition(strings.TrimSpace(word))
		if _, known := policy.Condition(name); !known {
			return pause{conditions: policy.names(), unreadable: cut(value)}
		}
		listed = append(listed, name)
	}
	return pause{conditions: listed}.inOrder(policy)
}

// IsPaused reports whether a Node's annotation taintlet.dev/paused stops additions for
// a condition. An agent that runs may not have heeded it yet.
func IsPaused(node *taints.Node, policy *Policy, name probes.Condition) bool {
	return parsePause(node.Annotations[taints.PausedAnnotation], policy).has(name)
}

// inOrder returns the pause with each of its conditions once, in the
// configuration's order.
func (p pause) inOrder(policy *Policy) pause {
	listed := p.conditions
	p.conditions = nil
	for _, name := range policy.names() {
		if slices.Contains(listed, name) {
			p.conditions = append(p.conditions, name)
		}
	}
	return p
}

// String lists the conditions.
func (p pause) String() string {
	names := make([]string, len(p.conditions))
	for i, name := range p.conditions {
		names[i] = string(name)
	}
	return strings.Join(names, ", ")
}

// endsFor reports whether the pause of some condition is over with the next one.
func (p pause) endsFor(next pause) bool {
	return slices.ContainsFunc(p.conditions, func(name probes.Condition) bool { return !next.has(name) })
}

// heedPause takes over what the Node says of a pause and tells people. A pause
// begins at once. One ends with a token of the write budget, so that somebody
// who pauses and resumes all the time cannot make a write of each.
func (s *State) heedPause(t *turn) {
	next := parsePause(t.in.Node.Annotations[taints.PausedAnnotation], t.policy)
	if next.equals(s.pause) {
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
	n := Notice{Kind: Paused, Message: "the annotation " + taints.PausedAnnotation + " stops new taints for " + next.String() + "; taints that stand go with recovery as always"}
	switch {
	case len(next.conditions) == 0:
		n.Kind, n.Message = Resumed, "the annotation "+taints.PausedAnnotation+" is gone; taints are set again"
		if forgiven {
			n.Message += ", also those that others removed"
		}
	case next.unreadable != "":
		n.Message += `. The value is neither "true" nor a list of conditions: ` + next.unreadable
	}
	n.Reason = string(n.Kind)
	t.tell(n)
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

// underPause leaves out what a pause stops: of a paused condition only those
// taints stay desired that are on the Node already, as they are.
func (s *State) underPause(node *Node, all []desired) []desired {
	if len(s.pause.conditions) == 0 {
		return all
	}
	var allowed []desired
	for _, d := range all {
		if s.pause.has(d.condition) && !node.Has(d.taint.Pair()) {
			d = d.otherWay()
			if pair := d.taint.Pair(); !slices.Contains(s.ledger.owned, pair) || !node.Has(pair) {
				continue
			}
		}
		allowed = append(allowed, d)
	}
	return allowed
}

// otherWay is the same taint as it stands where the policy is there although it
// has gone, or is not there although it has come.
func (d desired) otherWay() desired {
	if d.via != taints.StandIn {
		return d.as(taints.StandIn, d.standIn)
	}
	if _, reconciled := taints.LifecycleCondition(d.ruled); reconciled {
		return d.as(taints.Kept, d.ruled)
	}
	return d.as(taints.Direct, d.ruled)
}
