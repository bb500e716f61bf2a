package decide

import (
	"slices"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// HasRule reports whether a rule asks for a taint at this level of the condition, at least for
// one reason.
func (p *Policy) HasRule(condition probes.Condition, level probes.Level) bool {
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

// owns reports whether the taint of such a rule is among the pairs.
func owns(policy *Policy, owned []taints.Pair, isSuch func(*Rule) bool) bool {
	return slices.ContainsFunc(policy.Rules, func(r Rule) bool { return isSuch(&r) && slices.Contains(owned, r.Taint.Pair()) })
}

// valued are the conditions with a rule that makes a value of the severity, each once.
func (p *Policy) valued() (names []probes.Condition) {
	for i := range p.Rules {
		if rule := &p.Rules[i]; rule.Taint.ValueFrom != "" && !slices.Contains(names, rule.Condition) {
			names = append(names, rule.Condition)
		}
	}
	return names
}
