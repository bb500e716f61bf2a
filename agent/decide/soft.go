package decide

import (
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// SoftRule asks for a taint before a condition is Degraded: a soft one, by which pods
// prefer other Nodes.
type SoftRule struct {
	Condition probes.Condition `json:"condition"`
	// Severity (1 to 49) is from which on a sample is bad for this rule. 50 is the threshold
	// of Degraded.
	Severity int `json:"severity"`
	// Taint has the effect PreferNoSchedule or NoSchedule, and is written as asked.
	Taint Taint `json:"taint"`
}

// clearBelow is the severity below which a sample is good for the rule: three quarters.
func (r SoftRule) clearBelow() int { return max(1, r.Severity*3/4) }

// softBurst is how many sets and clears of soft taints may come at the same time. Then one
// may come in each interval of the write budget, which they take nothing from.
const softBurst = 2

// softBudget bounds the sets and clears of soft taints.
func (p *Policy) softBudget() WriteBudget {
	return WriteBudget{Burst: softBurst, Interval: p.WriteBudget.Interval}
}

// soft is what a State knows of soft taints. Without a rule for one it is empty.
type soft struct {
	taints []softTaint // one for each rule, in their order
	// budget has tokens of its own: a soft taint takes none of those that clears, repairs
	// and steps up to Critical need.
	budget, recordedBudget bucket
}

// softTaint is what a State knows of the taint of a SoftRule.
type softTaint struct {
	condition probes.Condition
	softMemory
	recorded softMemory
	evidence Debouncer // its Level, Penalty and SetAt are those of softMemory
}

// softMemory is what the record remembers of a soft taint.
type softMemory struct {
	isSet   bool
	penalty float64
	setAt   time.Time
	// isDesired: it is to stand on the Node. Not, if others removed it.
	isDesired bool
	dispute   dispute
}

// following returns a copy that has the rules of the policy. A new rule has set nothing,
// a dropped one is forgotten.
func (s soft) following(policy *Policy, now time.Time) soft {
	if len(policy.Soft) == 0 {
		return soft{}
	}
	before := s.taints
	s.taints = make([]softTaint, len(policy.Soft))
	s.budget, s.recordedBudget = s.budget.within(policy.softBudget(), now), s.recordedBudget.within(policy.softBudget(), now)
	for i, rule := range policy.Soft {
		s.taints[i] = softTaint{condition: rule.Condition, evidence: Debouncer{Level: probes.OK}}
		if at := slices.IndexFunc(before, func(t softTaint) bool { return t.condition == rule.Condition }); at >= 0 {
			s.taints[i] = before[at]
		}
	}
	return s
}

// observe adds a sample to the evidence of its rule.
func (s soft) observe(policy *Policy, o probes.Observation, now time.Time) {
	for i, rule := range policy.Soft {
		if rule.Condition == o.Condition {
			s.taints[i].evidence = s.taints[i].evidence.Next(rule.judge(o), now)
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

// forget returns the State's soft taints without the evidence of a condition.
func (s soft) forget(name probes.Condition) soft {
	s.taints = slices.Clone(s.taints)
	for i := range s.taints {
		if s.taints[i].condition == name {
			s.taints[i].evidence = s.taints[i].evidence.forget()
		}
	}
	return s
}

// isDue reports whether the record has to remember something else of soft taints.
func (s *soft) isDue() bool {
	return s.budget != s.recordedBudget || slices.ContainsFunc(s.taints, func(t softTaint) bool { return t.softMemory != t.recorded })
}

// revise notes that the record remembers this.
func (s *soft) revise() {
	s.recordedBudget = s.budget
	for i := range s.taints {
		s.taints[i].recorded = s.taints[i].softMemory
	}
}

// desired returns the soft taint as it is to stand on the Node.
func (r SoftRule) desired() DesiredTaint {
	pair := r.Taint.Pair()
	return DesiredTaint{Condition: r.Condition, Level: probes.OK, Pair: pair, Value: r.Taint.Value, Via: taints.Direct, ruled: pair, standIn: pair}
}

// IsSoft reports whether a rule asks for the taint before the condition is Degraded.
func (d DesiredTaint) IsSoft() bool { return d.Level == probes.OK }

// followSoft decides about the soft taints. Each set and each clear takes a token of their
// own budget, and waits until the last decision is on the Node.
func (s *State) followSoft(t *turn) {
	if len(t.policy.Soft) == 0 || !s.isSettled(t.in.Node) {
		return
	}
	for i, rule := range t.policy.Soft {
		soft := &s.soft.taints[i]
		soft.dispute = soft.dispute.settle(soft.evidence.Level, t.now)
		if !s.losesSoft(t, soft, rule) {
			s.moveSoft(t, soft, rule)
		}
	}
}

// losesSoft notes that somebody removed a soft taint. It is set again with the next token,
// unless it was removed twice within a minute.
func (s *State) losesSoft(t *turn, soft *softTaint, rule SoftRule) bool {
	d, node := rule.desired(), t.in.Node
	if !soft.isDesired || !slices.Contains(s.ledger.owned, d.Pair) || node.Has(d.Pair) {
		return false
	}
	soft.isDesired = false
	if !s.pause.has(soft.condition) {
		s.conditions.of(soft.condition).lose(t, d, &soft.dispute)
	}
	return true
}

// moveSoft sets or clears a soft taint where the evidence asks for it. A condition that is
// not OK keeps it.
func (s *State) moveSoft(t *turn, soft *softTaint, rule SoftRule) {
	debounce, c := t.policy.debounce(soft.condition), s.conditions.of(soft.condition)
	target := soft.evidence.Target(debounce, t.now)
	if c.debounce.Level > probes.OK {
		target = max(target, soft.evidence.Level)
	}
	isSet := target > probes.OK
	mayAdd := soft.isDesired || !s.pause.has(soft.condition) && soft.dispute.stage != withdrawn
	if isSet == soft.isSet && (isSet && mayAdd) == soft.isDesired || isSet && !mayAdd {
		return
	}
	budget, isTaken := s.soft.budget.take(t.policy.softBudget(), t.now)
	if !isTaken {
		return
	}
	s.soft.budget = budget
	taint := rule.desired().Taint()
	switch {
	case !isSet && soft.isDesired:
		t.notify(Notice{Kind: SoftTaintCleared, Condition: soft.condition, Message: describe.SoftCleared(taint, c.last.Message, rule.clearBelow())})
	case isSet && !soft.isSet:
		t.notify(Notice{Kind: SoftTaintSet, Condition: soft.condition, Message: describe.SoftSet(taint, c.last.Message, rule.Severity)})
	}
	if isSet != soft.isSet {
		soft.evidence = soft.evidence.Enter(target, debounce, t.now)
		soft.penalty, soft.setAt = soft.evidence.Penalty, soft.evidence.SetAt
	}
	soft.isSet, soft.isDesired = isSet, isSet
}

// isSettled reports whether the last decision is on the Node, and nobody has undone it: a
// repair waits for a token of the write budget, and must not come with a soft taint.
func (s *State) isSettled(node *Node) bool {
	return s.ledger.hasLanded() && !slices.ContainsFunc(s.ledger.desired, func(d DesiredTaint) bool { return !d.IsSoft() && !node.Has(d.Pair) })
}

// shown returns the soft taint of a condition that is desired, for people; empty: there
// is none.
func (s *soft) shown(policy *Policy, name probes.Condition) string {
	for i, rule := range policy.Soft {
		if rule.Condition == name && s.taints[i].isDesired {
			taint := rule.desired().Taint()
			return taint.String()
		}
	}
	return ""
}
