package verdict

import (
	"cmp"
	"math/bits"
	"time"
)

// A fault must show in streakBad of streakOf rounds. One round may be bad luck, and a fault
// that lets a round through now and then is still a fault.
const (
	streakBad = 3
	streakOf  = 5
)

// streak says for how long something has shown in 3 of the last 5 rounds.
type streak struct {
	rounds uint8               // newest in bit 0; 1: it showed
	at     [streakOf]time.Time // when these rounds began, newest first
	since  time.Time           // when it first showed; zero: it did not show often enough
}

// add takes in what a round showed.
func (s *streak) add(showed bool, at time.Time) {
	s.rounds = s.rounds << 1 & (1<<streakOf - 1)
	copy(s.at[1:], s.at[:])
	s.at[0] = at
	if showed {
		s.rounds |= 1
	}
	if s.count() < streakBad {
		s.since = time.Time{}
		return
	}
	s.since = cmp.Or(s.since, s.first())
}

// first returns when it first showed, of the last 5 rounds, in which it did.
func (s *streak) first() time.Time { return s.at[bits.Len8(s.rounds)-1] }

// due is when it will have shown for that long, if it goes on to show; zero: it does not show now.
func (s *streak) due(long time.Duration) time.Time {
	if !s.now() {
		return time.Time{}
	}
	return cmp.Or(s.since, s.first()).Add(long)
}

// holds reports whether it shows, and has for that long.
func (s *streak) holds(long time.Duration, now time.Time) bool {
	return s.often() && now.Sub(s.since) >= long
}

// often, now and any report whether it showed in 3 of the last 5 rounds, in the newest one, and
// in any of these. count is in how many.
func (s *streak) often() bool { return !s.since.IsZero() }
func (s *streak) now() bool   { return s.rounds&1 != 0 }
func (s *streak) any() bool   { return s.rounds != 0 }
func (s *streak) count() int  { return bits.OnesCount8(s.rounds) }
