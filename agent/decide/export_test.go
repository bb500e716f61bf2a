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

// Tokens is how many metered steps could be made at once.
func (s *State) Tokens(c WriteBudget, now time.Time) int {
	b, n := s.budget, 0
	for ok := true; ok && n <= c.Burst; n++ {
		if b, ok = b.take(c, now); !ok {
			return n
		}
	}
	return n
}

// NextToken is when the next metered step could be made.
func (s *State) NextToken(c WriteBudget, now time.Time) time.Time {
	if at := s.budget.nextAt(c); at.After(now) {
		return at
	}
	return now
}

// WritesThatWait is how many writes that no condition asks for wait for a token.
func (s *State) WritesThatWait() int { return s.writesThatWait() }

// PausedBy says what has stopped new taints for a condition, as the State knows it.
func (s *State) PausedBy(name probes.Condition) describe.Hold { return s.pause.holds(name) }

// Reaches reports whether the share brakes.
func (s Share) Reaches(percent, minPeers int) bool { return s.reaches(percent, minPeers) }
