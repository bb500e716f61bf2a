package verdict

import (
	"math/bits"
	"time"
)

// A fault must show in streakBad of streakOf rounds. One round may be bad luck,
// and a fault that lets a round through now and then is still a fault.
const (
	streakBad = 3
	streakOf  = 5
)

// streak says for how long something has shown in 3 of the last 5 rounds.
type streak struct {
	rounds uint8     // newest in bit 0; 1: it showed
	since  time.Time // zero: it did not show often enough
}

// add takes in what a round showed.
func (s *streak) add(showed bool, at time.Time) {
	s.rounds = s.rounds << 1 & (1<<streakOf - 1)
	if showed {
		s.rounds |= 1
	}
	switch {
	case bits.OnesCount8(s.rounds) < streakBad:
		s.since = time.Time{}
	case s.since.IsZero():
		s.since = at
	}
}

// holds reports whether it shows, and has for that long.
func (s *streak) holds(long time.Duration, now time.Time) bool {
	return !s.since.IsZero() && now.Sub(s.since) >= long
}

// now reports whether it showed in the newest round.
func (s *streak) now() bool { return s.rounds&1 != 0 }

// any reports whether it showed in any of the last 5 rounds.
func (s *streak) any() bool { return s.rounds != 0 }
