package decide

import (
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

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
