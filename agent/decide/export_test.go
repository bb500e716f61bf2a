package decide

import (
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
)

// Penalty lets tests compare what two agents have learnt of a condition.
func (s *State) Penalty(c probes.Condition) float64 { return s.conditions.of(c).debounce.Penalty }

// SetAt is when a condition was last set.
func (s *State) SetAt(c probes.Condition) time.Time { return s.conditions.of(c).debounce.SetAt }

// Tokens is how many tokens all buckets of a configuration have together.
func (s *State) Tokens(p *Policy, now time.Time) int {
	left := s.upkeep.left(p.Upkeep, now)
	for i := range p.Conditions {
		left += s.known(p.Conditions[i].Name).budget.left(p.WriteBudget, now)
	}
	return left
}

// NextToken is when the next bucket without a token gets one; now if all have one.
func (s *State) NextToken(p *Policy, now time.Time) time.Time {
	next := s.upkeep.nextAt(p.Upkeep)
	for i := range s.conditions {
		if at := s.conditions[i].budget.nextAt(p.WriteBudget); at.After(now) && (at.Before(next) || !next.After(now)) {
			next = at
		}
	}
	return later(now, next)
}

// PausedBy says what has stopped new taints for a condition, as the State knows it.
func (s *State) PausedBy(name probes.Condition) describe.Hold { return s.known(name).stopped }

// WhyNot says what keeps the taints of a condition that is not OK from the Node.
func (s *State) WhyNot(p *Policy, in Inputs, name probes.Condition, now time.Time) describe.Hold {
	in.Facts.KeepPolicy = in.Facts.KeepPolicy && !s.IsKeepFailing() // as Step does
	held, _, _ := s.whyNot(&turn{policy: p, in: in, now: now}, s.known(name))
	return held
}

// Reaches reports whether the share brakes.
func (s Share) Reaches(percent, minPeers int) bool { return s.reaches(percent, minPeers) }
