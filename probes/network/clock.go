package network

import (
	"time"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

// clock says when a round begins, by CLOCK_BOOTTIME as the decider has it, and for how
// long the host has slept since it was booted. Go's own monotonic clock stands still
// while the host sleeps (clock_gettime(2)).
type clock func() (at time.Time, slept time.Duration)

// shortestSleep is what counts as sleep: the two clocks are not read in one moment.
const shortestSleep = time.Second

// gaps finds the gaps between rounds.
type gaps struct {
	clock  clock
	period time.Duration
	// at is when the round before began, and slept for how long the host had slept by
	// then.
	at    time.Time
	slept time.Duration
}

// next begins a round. isAfterGap: the host slept since the round before, or the agent
// stood still. The network is then about to come up, and all that was seen is old.
func (g *gaps) next() (at time.Time, isAfterGap bool) {
	at, slept := g.clock()
	gap, nap := at.Sub(g.at), slept-g.slept
	isFirst := g.at.IsZero()
	g.at, g.slept = at, slept
	return at, !isFirst && (gap < 0 || gap > verdict.LongestGap(g.period) || nap >= shortestSleep)
}
