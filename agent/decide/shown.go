package decide

import (
	"time"

	"github.com/taintlet/taintlet/probes"
)

// TokensLeft returns how many tokens the write budget has.
func (s *State) TokensLeft(policy *Policy, now time.Time) int {
	missing := max(0, s.budget.fullAt.Sub(now))
	interval := policy.WriteBudget.Interval.Duration
	return max(0, policy.WriteBudget.Burst-int((missing+interval-1)/interval))
}

// TimeToClear returns how long every further sample must be good before a condition
// is OK; false where it is OK. The write budget may make it longer.
func (s *State) TimeToClear(policy *Policy, name probes.Condition) (time.Duration, bool) {
	c, configured := policy.Condition(name)
	known := s.conditions.of(name)
	if !configured || known == nil || known.debounce.Level == probes.OK {
		return 0, false
	}
	left := known.debounce.ClearAfter(c.Debounce)
	if known.debounce.class == clear {
		left = max(0, left-known.debounce.held)
	}
	return left, true
}

// Since returns when a condition went from OK to Degraded; false where it is OK.
func (s *State) Since(name probes.Condition) (time.Time, bool) {
	c := s.conditions.of(name)
	if c == nil || c.debounce.Level == probes.OK {
		return time.Time{}, false
	}
	return c.debounce.SetAt, true
}

// IsContested reports whether a condition's taint is a stand-in or missing because
// others removed it.
func (s *State) IsContested(name probes.Condition) bool {
	c := s.conditions.of(name)
	return c != nil && (c.disputes[0].stage != asRuled || c.disputes[1].stage != asRuled)
}
