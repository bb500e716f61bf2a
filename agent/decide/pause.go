package decide

import (
	"cmp"
	"slices"
	"strings"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// isPaused reports whether additions for the condition are stopped.
func (c *condition) isPaused() bool { return c.stopped != "" }

// isObserved reports whether no taint of the condition is to be on the Node.
func (c *condition) isObserved() bool { return c.stopped == describe.HeldObserved }

// rank orders what stops additions: of several, the highest counts.
func rank(stop describe.Hold) int {
	return slices.Index([]describe.Hold{"", describe.HeldMaintenance, describe.HeldPaused, describe.HeldObserved}, stop)
}

// parsePause reads the annotation taintlet.dev/paused: "true", "false", or conditions separated by
// commas. The author of anything else wanted to stop something, so everything is stopped.
func parsePause(value string, policy *Policy) (paused []probes.Condition, isReadable bool) {
	switch value {
	case "", "false":
		return nil, true
	case "true":
		return policy.names(), true
	}
	for word := range strings.SplitSeq(value, ",") {
		name := probes.Condition(strings.TrimSpace(word))
		if _, known := policy.Condition(name); !known {
			return policy.names(), false
		}
		paused = append(paused, name)
	}
	return paused, true
}

// PausedBy returns the cause that stops new taints of a condition on a Node; empty: there is none.
// A running agent may not have applied it yet. An annotation of the mode that is not known was
// meant to stop something.
func PausedBy(node *taints.Node, policy *Policy, name probes.Condition) describe.Hold {
	c, _ := policy.Condition(name)
	mode := node.Annotations[taints.ModeAnnotation]
	paused, _ := parsePause(node.Annotations[taints.PausedAnnotation], policy)
	switch {
	case c.Observed || mode != "" && mode != string(Enforce):
		return describe.HeldObserved
	case slices.Contains(paused, name):
		return describe.HeldPaused
	case MaintenanceOf(node, policy.Maintenance) != "":
		return describe.HeldMaintenance
	}
	return ""
}

// followPause takes over what stops additions on the Node, and reports changes. A pause begins at
// once. One ends with a token of the write budget, so that pausing and resuming all the time does
// not cause a write each time. A pause that begins does not wait for a pause that ends.
func (s *State) followPause(t *turn) {
	node, stops := t.in.Node.Node, make([]describe.Hold, 2*len(s.conditions))
	before, next := pause{stops[:len(s.conditions)], s.maintenance}, pause{stops[len(s.conditions):], MaintenanceOf(node, t.policy.Maintenance)}
	ends := before.maintenance != "" && next.maintenance == ""
	for i := range s.conditions {
		before.stops[i], next.stops[i] = s.conditions[i].stopped, PausedBy(node, t.policy, s.conditions[i].name)
		ends = ends || rank(next.stops[i]) < rank(before.stops[i])
	}
	if slices.Equal(before.stops, next.stops) && before.maintenance == next.maintenance {
		return
	}
	if ends && !s.upkeep.take(t.policy.Upkeep, t.now) {
		next.keep(before)
	}
	resumes, forgiven := false, false
	s.maintenance = next.maintenance
	for i, stop := range before.stops {
		c := &s.conditions[i]
		c.stopped = next.stops[i]
		switch hasEnded := rank(c.stopped) < rank(stop); {
		case hasEnded && stop == describe.HeldPaused:
			resumes, forgiven = true, c.forgive() || forgiven
		case hasEnded && stop == describe.HeldObserved && c.debounce.Level == probes.Critical:
			c.debounce.Level = probes.Degraded // an eviction begins with a sample, an Event and a slot
		}
	}
	s.notifyPause(t, before, next, resumes, forgiven)
}

// pause is what stops additions: the Hold of each condition, and the type of the Node condition by
// which the Node is under maintenance. Empty values stop nothing.
type pause struct {
	stops       []describe.Hold
	maintenance string
}

// keep has what stopped additions before go on.
func (p *pause) keep(before pause) {
	p.maintenance = cmp.Or(p.maintenance, before.maintenance)
	for i, stop := range before.stops {
		if rank(p.stops[i]) < rank(stop) {
			p.stops[i] = stop
		}
	}
}

// notifyPause reports what stops additions from now on, or no longer does. Of several conditions
// that mean maintenance, it names one.
func (s *State) notifyPause(t *turn, before, next pause, resumes, forgiven bool) {
	switch was, is := s.stoppedBy(describe.HeldObserved, before), s.stoppedBy(describe.HeldObserved, next); {
	case was == is:
	case is != "":
		t.notify(Notice{Kind: Observed, Message: describe.Observed(is)})
	default:
		t.notify(Notice{Kind: Enforced, Message: describe.Enforced(was)})
	}
	paused := s.stoppedBy(describe.HeldPaused, next)
	switch was := s.stoppedBy(describe.HeldPaused, before); {
	case paused != "" && paused != was:
		unreadable := t.in.Node.Annotations[taints.PausedAnnotation]
		if _, isReadable := parsePause(unreadable, t.policy); isReadable {
			unreadable = ""
		}
		t.notify(Notice{Kind: Paused, Message: describe.Paused(paused, describe.Cut(unreadable))})
	case paused == "" && resumes:
		t.notify(Notice{Kind: Resumed, Message: describe.Resumed(forgiven, next.maintenance != "")})
	}
	switch wasUnder, isUnder := before.maintenance != "", next.maintenance != ""; {
	case isUnder && !wasUnder:
		t.notify(Notice{Kind: Paused, Message: describe.MaintenanceBegins(next.maintenance)})
	case wasUnder && !isUnder:
		t.notify(Notice{Kind: Resumed, Message: describe.MaintenanceEnds(before.maintenance, paused)})
	}
}

// stoppedBy names the conditions that something stops, for people.
func (s *State) stoppedBy(stop describe.Hold, by pause) string {
	var names []string
	for i := range s.conditions {
		if by.stops[i] == stop {
			names = append(names, string(s.conditions[i].name))
		}
	}
	return strings.Join(names, ", ")
}

// forgive ends the contests of a condition whose pause by a person is over, and forgets a first
// loss. A person who ends a pause has decided again, and this is the one way to end a contest. A
// veto stays: nobody evicts by mistake.
func (c *condition) forgive() (forgiven bool) {
	for i := range c.disputes {
		if d := &c.disputes[i]; d.conceded < vetoed {
			forgiven = forgiven || d.conceded != asRuled
			*d = dispute{}
		}
	}
	return forgiven
}

// asItStands returns the taint as it is on the Node already, where the condition is paused: a pause
// changes no taint that stands. If the answer about the policy has changed since, a kept taint
// stands as its stand-in, or the reverse.
func (s *State) asItStands(node *Node, d DesiredTaint) DesiredTaint {
	via, pair := taints.Kept, d.ruled
	if d.Via == taints.Kept {
		via, pair = taints.StandIn, d.standIn
	}
	if s.known(d.Condition).isPaused() && !node.Has(d.Pair) && d.Via != taints.Direct && slices.Contains(s.ledger.owned, pair) && node.Has(pair) {
		d.Via, d.Pair = via, pair
	}
	return d
}

// Drained is the type of the condition that a Node keeps after a drain. KEP-5683 leaves its removal
// to operators, so it can still be True when the Node accepts pods again.
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
