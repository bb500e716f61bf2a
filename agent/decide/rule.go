package decide

import (
	"slices"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Rule says which taint a level of a condition asks for.
type Rule struct {
	Condition probes.Condition `json:"condition"`
	Level     probes.Level     `json:"level"`
	// Reasons are those for which the rule asks for its taint; none: all. For Critical they
	// also say which samples are critical: see Policy.graded.
	Reasons []string `json:"reasons,omitempty"`
	Taint   Taint    `json:"taint"`
	// Clear says who removes the taint.
	Clear Clearing `json:"clear,omitempty"`
}

// Clearing says who removes the taint of a rule.
type Clearing string

const (
	// ClearAutomatic means that taintlet does, when the condition is OK again.
	ClearAutomatic Clearing = ""
	// ClearManual means that somebody else does, and so acknowledges the fault. The taint stays until
	// then, and does not come back before the condition has been OK.
	ClearManual Clearing = "manual"
)

// Taint is what a rule puts on the Node.
type Taint struct {
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
	// ValueFrom says what the value is made of, FromSeverity; empty: it is Value.
	ValueFrom string        `json:"valueFrom,omitempty"`
	Effect    taints.Effect `json:"effect"`
}

// Pair is the taint's identity.
func (t Taint) Pair() taints.Pair { return taints.Pair{Key: t.Key, Effect: t.Effect} }

// Covers reports whether the rule asks for its taint for a reason of its condition.
func (r *Rule) Covers(reason string) bool {
	return len(r.Reasons) == 0 || slices.Contains(r.Reasons, reason)
}

// Asks reports whether a rule asks for a taint at this level of the condition, at least for
// one reason.
func (p *Policy) Asks(condition probes.Condition, level probes.Level) bool {
	_, found := p.rule(condition, level)
	return found
}

// rule returns the first rule for a level of a condition; false if there is none. There is
// one for Critical at most.
func (p *Policy) rule(condition probes.Condition, level probes.Level) (*Rule, bool) {
	for i := range p.Rules {
		if rule := &p.Rules[i]; rule.Condition == condition && rule.Level == level {
			return rule, true
		}
	}
	return nil, false
}

// distinguishes reports whether a rule for Degraded of the condition names the reason.
func (p *Policy) distinguishes(condition probes.Condition, reason string) bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool {
		return r.Condition == condition && r.Level == probes.Degraded && slices.Contains(r.Reasons, reason)
	})
}

// hasManual reports whether somebody else removes a taint of the condition.
func (p *Policy) hasManual(condition probes.Condition) bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.Condition == condition && r.Clear == ClearManual })
}

// RulesFor returns the rules that ask for their taints at the level of a sample, if its
// condition has that level. Levels add up: at Critical the taint of Degraded stays.
func (p *Policy) RulesFor(o probes.Observation) (rules []Rule) {
	o = p.graded(o)
	for _, rule := range p.Rules {
		if rule.Condition == o.Condition && rule.Level <= o.Level && rule.Covers(o.Reason) {
			rules = append(rules, rule)
		}
	}
	return rules
}

// graded returns a bad sample at the level that the rule for Critical gives to its reason:
// only what the rule covers is critical. Of a condition whose probe does not know that level,
// all that the rule names is. Of one that others report, all that the rule covers is.
func (p *Policy) graded(o probes.Observation) probes.Observation {
	if o.Level < probes.Degraded {
		return o
	}
	rule, found := p.rule(o.Condition, probes.Critical)
	if !found {
		return o
	}
	condition, _ := p.Condition(o.Condition)
	switch covers := rule.Covers(o.Reason); {
	case !covers:
		o.Level = probes.Degraded
	case !condition.BecomesCritical && (condition.Reported || len(rule.Reasons) > 0):
		o.Level = probes.Critical
	}
	return o
}
