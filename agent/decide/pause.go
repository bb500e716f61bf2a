package decide

import (
	"cmp"
	"slices"
	"strings"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// pause says for which conditions a person has stopped additions, or for all of them
// the maintenance of the Node, and which are only observed.
type pause struct {
	// conditions are those that the annotation names, in the configuration's order. The
	// slice is replaced, never changed.
	conditions []probes.Condition
	// maintenance is the type of the Node condition by which the Node is under
	// maintenance, which stops additions for all conditions; empty: it is not.
	maintenance string
	// unreadable is the annotation's value when it says neither "true", "false" nor a list of
	// conditions. Its author wanted to stop something, so everything is stopped.
	unreadable string
	// observed are those of which no taint is to be on the Node, by the configuration or by
	// the Node's annotation, in the configuration's order.
	observed []probes.Condition
}

// has reports whether additions for a condition are stopped.
func (p pause) has(name probes.Condition) bool { return p.holds(name) != "" }

// byPerson reports whether the annotation stops additions for a condition.
func (p pause) byPerson(name probes.Condition) bool { return slices.Contains(p.conditions, name) }

// observes reports whether no taint of a condition is to be on the Node.
func (p pause) observes(name probes.Condition) bool { return slices.Contains(p.observed, name) }

// holds says what stops additions for a condition; empty: nothing does.
func (p pause) holds(name probes.Condition) describe.Hold {
	switch {
	case p.observes(name):
		return describe.HeldObserved
	case p.byPerson(name):
		return describe.HeldPaused
	case p.maintenance != "":
		return describe.HeldMaintenance
	}
	return ""
}

func (p pause) equal(other pause) bool {
	return p.unreadable == other.unreadable && slices.Equal(p.conditions, other.conditions) && p.maintenance == other.maintenance && slices.Equal(p.observed, other.observed)
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
	var named []probes.Condition
	for word := range strings.SplitSeq(value, ",") {
		name := probes.Condition(strings.TrimSpace(word))
		if _, known := policy.Condition(name); !known {
			return pause{conditions: policy.names(), unreadable: describe.Cut(value)}
		}
		named = append(named, name)
	}
	return pause{conditions: inOrder(named, policy)}
}

// pauseOf reads what stops additions on a Node: the annotations, the configuration and the
// maintenance. An annotation of the mode that is not known was meant to stop something.
func pauseOf(node *taints.Node, policy *Policy) pause {
	p := parsePause(node.Annotations[taints.PausedAnnotation], policy)
	p.maintenance = MaintenanceOf(node, policy.Maintenance)
	isObserved := !slices.Contains([]string{"", string(Enforce)}, node.Annotations[taints.ModeAnnotation])
	for i := range policy.Conditions {
		if c := &policy.Conditions[i]; isObserved || c.Observed {
			p.observed = append(p.observed, c.Name)
		}
	}
	return p
}

// PausedBy says what stops additions for a condition on a Node; empty: nothing does. An
// agent that runs may not have followed it yet.
func PausedBy(node *taints.Node, policy *Policy, name probes.Condition) describe.Hold {
	return pauseOf(node, policy).holds(name)
}

// inOrder returns each of the conditions once, in the configuration's order.
func inOrder(listed []probes.Condition, policy *Policy) []probes.Condition {
	return slices.DeleteFunc(policy.names(), func(name probes.Condition) bool { return !slices.Contains(listed, name) })
}

// listed names conditions for people.
func listed(all []probes.Condition) string {
	names := make([]string, len(all))
	for i, name := range all {
		names[i] = string(name)
	}
	return strings.Join(names, ", ")
}

// endsFor reports whether what stops additions for some condition is over with the next
// pause: a person's, the maintenance, or the mode.
func (p pause) endsFor(next pause) bool {
	if p.maintenance != "" && next.maintenance == "" {
		return true
	}
	return slices.ContainsFunc(p.conditions, func(name probes.Condition) bool { return !next.byPerson(name) }) ||
		slices.ContainsFunc(p.observed, func(name probes.Condition) bool { return !next.observes(name) })
}

// followPause takes over the pause and the maintenance that the Node shows, and reports changes. A
// pause begins at once. One ends with a token of the write budget, so that pausing and resuming all
// the time does not cause a write each time.
func (s *State) followPause(t *turn) {
	next := pauseOf(t.in.Node.Node, t.policy)
	if next.equal(s.pause) {
		return
	}
	forgiven := false
	if s.pause.endsFor(next) {
		if !s.upkeep.take(t.policy.Upkeep, t.now) {
			// A pause that begins does not wait for a pause that ends.
			s.pause.conditions = inOrder(slices.Concat(s.pause.conditions, next.conditions), t.policy)
			s.pause.observed = inOrder(slices.Concat(s.pause.observed, next.observed), t.policy)
			s.pause.maintenance = cmp.Or(next.maintenance, s.pause.maintenance)
			return
		}
		forgiven = s.forgive(next)
	}
	before := s.pause
	s.pause = next
	s.endObserving(before)
	notifyPause(t, before, next, forgiven)
}

// endObserving brings what was Critical only to be reported back to Degraded: an eviction
// begins with a sample, an Event and a slot.
func (s *State) endObserving(before pause) {
	for i := range s.conditions {
		c := &s.conditions[i]
		if before.observes(c.name) && !s.pause.observes(c.name) && c.debounce.Level == probes.Critical {
			c.debounce.Level = probes.Degraded
		}
	}
}

// notifyPause reports what stops additions from now on, or no longer does: the annotation, the
// maintenance, or both. Of several conditions that mean maintenance, it names one.
func notifyPause(t *turn, before, next pause, forgiven bool) {
	if !slices.Equal(before.observed, next.observed) {
		if len(next.observed) > 0 {
			t.notify(Notice{Kind: Observed, Message: describe.Observed(listed(next.observed))})
		} else {
			t.notify(Notice{Kind: Enforced, Message: describe.Enforced(listed(before.observed))})
		}
	}
	isByPerson, isByMaintenance := len(next.conditions) > 0, next.maintenance != ""
	switch isSame := before.unreadable == next.unreadable && slices.Equal(before.conditions, next.conditions); {
	case isSame:
	case isByPerson:
		t.notify(Notice{Kind: Paused, Message: describe.Paused(listed(next.conditions), next.unreadable)})
	default:
		t.notify(Notice{Kind: Resumed, Message: describe.Resumed(forgiven, isByMaintenance)})
	}
	switch wasByMaintenance := before.maintenance != ""; {
	case isByMaintenance == wasByMaintenance:
	case isByMaintenance:
		t.notify(Notice{Kind: Paused, Message: describe.MaintenanceBegins(next.maintenance)})
	default:
		t.notify(Notice{Kind: Resumed, Message: describe.MaintenanceEnds(before.maintenance, listed(next.conditions))})
	}
}

// forgive ends the contests of the conditions whose pause by a person is over with the next one,
// and forgets a first loss. A person who ends a pause has decided again, and this is the one way to
// end a contest. A veto stays: nobody evicts by mistake.
func (s *State) forgive(next pause) (forgiven bool) {
	for i := range s.conditions {
		c := &s.conditions[i]
		if !s.pause.byPerson(c.name) || next.byPerson(c.name) {
			continue
		}
		for j := range c.disputes {
			if d := &c.disputes[j]; d.conceded < vetoed {
				forgiven = forgiven || d.conceded != asRuled
				*d = dispute{}
			}
		}
	}
	return forgiven
}

// asItStands returns the taint as it is on the Node already, where the condition is paused: a pause
// changes no taint that stands.
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

// Drained is the type of the condition that a Node keeps after a drain. KEP-5683 leaves it to
// people to take it back, so it can still be there when the Node takes pods again.
const Drained = "Drained"

// MaintenanceOf returns the first of these types whose condition is True on a Node; empty:
// the Node is not under maintenance. A Node that is drained counts while it is cordoned.
func MaintenanceOf(node *taints.Node, types []string) string {
	for i := range node.Conditions {
		c := &node.Conditions[i]
		isBack := c.Type == Drained && !node.IsUnschedulable
		if c.Status == taints.ConditionTrue && !isBack && slices.Contains(types, c.Type) {
			return c.Type
		}
	}
	return ""
}
