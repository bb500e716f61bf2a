package decide

import (
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// clearBelow is the severity below which a sample is good for the rule: three quarters.
func (r SoftRule) clearBelow() int { return max(1, r.Severity*3/4) }

// softBurst is how many sets and clears of soft taints may come at the same time. Then one
// may come in each interval of upkeep, whose tokens they leave alone.
const softBurst = 2

// softBudget bounds the sets and clears of soft taints.
func (p *Policy) softBudget() WriteBudget {
	return WriteBudget{Burst: softBurst, Interval: p.Upkeep.Interval}
}

// following is the budget under a policy.
func (s soft) following(policy *Policy, now time.Time) soft {
	if len(policy.Soft) == 0 {
		return soft{}
	}
	return soft{s.budget.within(policy.softBudget(), now), s.recorded.within(policy.softBudget(), now)}
}

// observeSoft adds a sample to the evidence of the condition's rule.
func (c *condition) observeSoft(policy *Policy, o probes.Observation, now time.Time) {
	for _, rule := range policy.Soft {
		if rule.Condition == c.name {
			c.soft.evidence = c.soft.evidence.Next(rule.judge(o), now)
		}
	}
}

// judge returns what a sample says of the rule: bad from its severity on, and good below
// an easier one.
func (r SoftRule) judge(o probes.Observation) probes.Observation {
	judged := probes.Observation{Level: probes.OK, Certain: o.Certain}
	switch {
	case o.Level == probes.Unknown:
		judged.Level = probes.Unknown
	case o.Severity >= r.Severity || o.Level > probes.OK:
		judged.Level = probes.Degraded
	default:
		judged.Hysteresis = o.Severity >= r.clearBelow()
	}
	return judged
}

// desired returns the soft taint as it is to stand on the Node.
func (r SoftRule) desired() DesiredTaint {
	pair := r.Taint.Pair()
	return DesiredTaint{Condition: r.Condition, Level: probes.OK, Pair: pair, Value: r.Taint.Value, Via: taints.Direct, ruled: pair, standIn: pair}
}

// followSoft decides about the soft taints. Each set and each clear takes a token of their
// own budget, and waits until the last decision is on the Node.
func (s *State) followSoft(t *turn) {
	if len(t.policy.Soft) == 0 || !s.isSettled(t.in.Node) {
		return
	}
	for _, rule := range t.policy.Soft {
		c := s.conditions.of(rule.Condition)
		if !s.losesSoft(t, c, rule) {
			s.moveSoft(t, c, rule)
		}
		c.soft.dispute = c.soft.dispute.settle(c.soft.evidence.Level)
	}
}

// losesSoft notes that somebody removed a soft taint. It is set again with the next token,
// unless it was removed twice within a minute.
func (s *State) losesSoft(t *turn, c *condition, rule SoftRule) bool {
	d, node := rule.desired(), t.in.Node
	if !c.soft.isDesired || s.pause.observes(c.name) || !slices.Contains(s.ledger.owned, d.Pair) || node.Has(d.Pair) {
		return false
	}
	c.soft.isDesired = false
	if !s.pause.has(c.name) {
		c.lose(t, d, &c.soft.dispute)
	}
	return true
}

// moveSoft sets or clears a soft taint where the evidence asks for it. A condition that is
// not OK keeps it.
func (s *State) moveSoft(t *turn, c *condition, rule SoftRule) {
	debounce, soft := t.policy.debounce(c.name), c.soft
	target := soft.evidence.Target(debounce, t.now)
	if c.debounce.Level > probes.OK {
		target = max(target, soft.evidence.Level)
	}
	isSet := target > probes.OK
	isObserved := s.pause.observes(c.name)
	mayAdd := soft.isDesired || (isObserved || !s.pause.has(c.name)) && soft.dispute.conceded == asRuled
	if isSet == soft.isSet && (isSet && mayAdd) == soft.isDesired || isSet && !mayAdd {
		return
	}
	budget, isTaken := s.soft.budget.take(t.policy.softBudget(), t.now)
	if !isTaken {
		return
	}
	s.soft.budget = budget
	c.notifySoft(t, rule, isSet, isObserved)
	if isSet != soft.isSet {
		soft.evidence = soft.evidence.Enter(target, debounce, t.now)
		soft.penalty, soft.setAt = soft.evidence.Penalty, soft.evidence.SetAt
	}
	soft.isSet, soft.isDesired = isSet, isSet
}

// notifySoft tells people that a soft taint is set now, or cleared.
func (c *condition) notifySoft(t *turn, rule SoftRule, isSet, isObserved bool) {
	taint := rule.desired().Taint()
	switch {
	case !isSet && c.soft.isDesired:
		t.notify(Notice{Kind: SoftTaintCleared, Condition: c.name, Message: describe.SoftCleared(taint, c.last.Message, rule.clearBelow(), isObserved)})
	case isSet && !c.soft.isSet:
		t.notify(Notice{Kind: SoftTaintSet, Condition: c.name, Message: describe.SoftSet(taint, c.last.Message, rule.Severity, isObserved)})
	}
}

// isSettled reports whether the last decision is on the Node, and nobody has undone it: a
// repair waits for a token of the write budget, and must not come with a soft taint.
func (s *State) isSettled(node *Node) bool {
	return s.ledger.hasLanded() && !slices.ContainsFunc(s.ledger.desired, func(d DesiredTaint) bool { return !d.IsSoft() && !node.Has(d.Pair) })
}

// softShown returns the soft taint of the condition that is desired, for people; empty:
// there is none.
func (c *condition) softShown(policy *Policy) string {
	for _, rule := range policy.Soft {
		if rule.Condition == c.name && c.soft.isDesired {
			taint := rule.desired().Taint()
			return taint.String()
		}
	}
	return ""
}

// softRecord returns what the record is to say of soft taints; nil: there is nothing to
// remember.
func (s *State) softRecord() *recordSoft {
	r := &recordSoft{TokensAt: s.boot.tokensAt(s.soft.budget)}
	for _, rule := range s.ledger.policy.Soft {
		t := s.conditions.of(rule.Condition).soft.softMemory
		if t == (softMemory{}) {
			continue
		}
		entry := recordSoftTaint{Pair: rule.Taint.Pair(), Set: t.isSet, Desired: t.isDesired, Penalty: t.penalty, SetAt: s.boot.since(t.setAt)}
		if t.dispute != (dispute{}) {
			entry.Dispute = new(s.boot.dispute(t.dispute))
		}
		if r.Taints == nil {
			r.Taints = map[probes.Condition]recordSoftTaint{}
		}
		r.Taints[rule.Condition] = entry
	}
	if r.TokensAt == 0 && r.Taints == nil {
		return nil
	}
	return r
}

// restoreSoft takes over what the record says of soft taints. Evidence that was collected
// before is kept.
func (s *State) restoreSoft(t *turn, r *recordSoft, line timeline) {
	if r == nil {
		r = &recordSoft{}
	}
	s.soft.budget = line.bucket(r.TokensAt, t.policy.softBudget())
	for _, rule := range t.policy.Soft {
		soft, entry := s.conditions.of(rule.Condition).soft, r.Taints[rule.Condition]
		soft.softMemory = softMemory{isSet: entry.Set, isDesired: entry.Set && entry.Desired, penalty: min(entry.Penalty, maxPenalty), setAt: line.past(entry.SetAt)}
		if d := entry.Dispute; d != nil {
			soft.dispute = line.dispute(*d)
		}
		soft.evidence.Level, soft.evidence.Penalty, soft.evidence.SetAt = probes.OK, soft.penalty, soft.setAt
		if entry.Set {
			soft.evidence.Level = probes.Degraded
		}
	}
}

// pairs returns the pairs of the soft taints with their conditions.
func (r *recordSoft) pairs() map[taints.Pair]probes.Condition {
	if r == nil {
		return nil
	}
	pairs := make(map[taints.Pair]probes.Condition, len(r.Taints))
	for condition, taint := range r.Taints {
		pairs[taint.Pair] = condition
	}
	return pairs
}
