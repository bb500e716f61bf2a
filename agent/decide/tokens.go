package decide

import (
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
)

// tokenGate says whether a condition has to wait for a token of the write budget, and
// until when.
func (s *State) tokenGate(t *turn, c *condition) (describe.Hold, time.Time) {
	if at := s.tokenAt(t.policy, c, t.now, t.now); t.now.Before(at) {
		return describe.HeldWriteBudget, at
	}
	return "", time.Time{}
}

// clearsAt is when a condition will be OK if every sample is good from now on: it has
// been good for long enough then, and has its token.
func (s *State) clearsAt(policy *Policy, c *condition, now time.Time) time.Time {
	return s.tokenAt(policy, c, c.debounce.goodAt(policy.debounce(c.name), now), now)
}

// tokenAt is when a condition gets the token that it needs at that time or later: first
// come, first served. Otherwise a condition with a period of 1 s could keep a condition
// with a period of 10 s from clearing for ever. A condition that waits already comes
// before what is not due yet, such as the clears of other conditions that recover. What
// is not sampled any more holds up nobody.
func (s *State) tokenAt(policy *Policy, c *condition, due, now time.Time) time.Time {
	budget, waits := s.budget, !c.waitingSince.IsZero()
	take := func(due time.Time) time.Time {
		at := later(due, budget.nextAt(policy.WriteBudget))
		budget, _ = budget.take(policy.WriteBudget, at)
		return at
	}
	if waits {
		due = c.waitingSince
	} else {
		for range s.writesThatWait() {
			take(now)
		}
	}
	var earlierOnes [8]time.Time
	before := earlierOnes[:0]
	for i := range s.conditions {
		other := &s.conditions[i]
		claim := other.waitingSince
		if claim.IsZero() && !waits && other.debounce.isClearing() {
			claim = other.debounce.goodAt(policy.debounce(other.name), now)
		}
		if other.name != c.name && !claim.IsZero() && claim.Before(due) && now.Sub(other.debounce.seenAt) <= maxGap {
			before = append(before, claim)
		}
	}
	slices.SortFunc(before, time.Time.Compare)
	for _, claim := range before {
		take(claim)
	}
	return take(due)
}

// writesThatWait is how many writes that no condition asks for wait for a token: the
// end of a pause, and a repair.
func (s *State) writesThatWait() (n int) {
	if len(s.pause.ending) > 0 {
		n++
	}
	if s.ledger.repairWaits {
		n++
	}
	return n
}
