package decide

import (
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// paused says for which conditions a person has stopped additions.
type paused struct {
	conditions [conditionCount]bool
	// unreadable is the annotation's value when it says neither "true", "false"
	// nor a list of conditions. Whoever wrote it wanted to stop something, so
	// everything is stopped.
	unreadable string
}

func (p paused) has(c probes.Condition) bool { return p.conditions[index(c)] }

// parsePaused reads the annotation taintlet.dev/paused: "true", or conditions
// separated by commas.
func parsePaused(value string) paused {
	var p paused
	all := [conditionCount]bool{true, true, true, true}
	switch value {
	case "", "false":
		return p
	case "true":
		p.conditions = all
		return p
	}
	for word := range strings.SplitSeq(value, ",") {
		c := probes.Condition(strings.TrimSpace(word))
		if !slices.Contains(probes.Conditions(), c) {
			return paused{all, value}
		}
		p.conditions[index(c)] = true
	}
	return p
}

// String lists the conditions.
func (p paused) String() string {
	var names []string
	for _, c := range probes.Conditions() {
		if p.has(c) {
			names = append(names, string(c))
		}
	}
	return strings.Join(names, ", ")
}

// ends reports whether the pause of some condition is over.
func (p paused) ends(next paused) bool {
	for i := range p.conditions {
		if p.conditions[i] && !next.conditions[i] {
			return true
		}
	}
	return false
}

// heedPause takes over what the Node says of a pause and tells people. A pause
// begins at once; one ends with a token of the write budget, so that somebody
// who pauses and resumes all the time cannot make a write of each.
func (s *State) heedPause(cfg *config.Config, next paused, now time.Time, d *Decision) {
	if next == s.paused {
		return
	}
	if s.paused.ends(next) {
		var ok bool
		if s.bucket, ok = s.bucket.take(cfg.WriteBudget, now); !ok {
			s.reviewBy(s.bucket.nextAt(cfg.WriteBudget))
			for i, begins := range next.conditions { // a pause begins at once
				s.paused.conditions[i] = s.paused.conditions[i] || begins
			}
			return
		}
		s.dirty = true // the token is to be remembered
	}
	s.paused = next
	n := Notice{Kind: Paused, Message: "the annotation " + taints.PausedAnnotation + " stops new taints for " + next.String() + "; taints that stand go with recovery as always"}
	switch {
	case next == paused{}:
		n.Kind, n.Message = Resumed, "the annotation "+taints.PausedAnnotation+" is gone; taints are set again"
	case next.unreadable != "":
		n.Message += `. The value is neither "true" nor a list of conditions: ` + next.unreadable
	}
	n.Reason = string(n.Kind)
	d.Notices = append(d.Notices, n)
}

// underPause returns what is wanted, less what a pause stops: of a paused
// condition only those taints stay wanted that are on the Node already, as
// they are.
func (s *State) underPause(want []wanted, node *Node) []wanted {
	if s.paused.conditions == [conditionCount]bool{} {
		return want
	}
	var allowed []wanted
	for _, w := range want {
		if s.paused.has(w.condition) && !taints.Has(node.Spec.Taints, w.taint.Pair()) {
			w = w.otherWay()
			if !slices.Contains(s.owned, w.taint.Pair()) || !taints.Has(node.Spec.Taints, w.taint.Pair()) {
				continue
			}
		}
		allowed = append(allowed, w)
	}
	return allowed
}

// otherWay is the same taint as it stands where the policy is there although it
// has gone, or is not there although it has come.
func (w wanted) otherWay() wanted {
	pair, via := w.standIn, taints.StandIn
	if w.via == taints.StandIn {
		pair, via = w.ruled, taints.Direct
		if _, reconciled := taints.LifecycleCondition(pair); reconciled {
			via = taints.Kept
		}
	}
	w.via, w.taint.Key, w.taint.Effect = via, pair.Key, pair.Effect
	return w
}
