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
// is OK; false where it is OK. That it may wait for the write budget is included.
func (s *State) TimeToClear(policy *Policy, name probes.Condition, now time.Time) (time.Duration, bool) {
	c := s.conditions.of(name)
	if c == nil || c.debounce.Level == probes.OK {
		return 0, false
	}
	return max(0, s.clearsAt(policy, c, now).Sub(now)), true
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
