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

// isAfterGap reports whether the host slept since the round before, or the agent stood
// still. The network is then about to come up, and all that was seen is old.
func (p *Probe) isAfterGap(at time.Time, slept time.Duration) bool {
	gap, nap := at.Sub(p.at), slept-p.slept
	isFirst := p.at.IsZero()
	p.at, p.slept = at, slept
	return !isFirst && (gap < 0 || gap > verdict.LongestGap(p.period) || nap >= shortestSleep)
}

// forget makes the probe as new: nothing was well, nobody was reached. What may hang
// is still asked once only.
func (p *Probe) forget() {
	for _, c := range p.checks {
		if f, ok := c.(interface{ Forget() }); ok {
			f.Forget()
		}
	}
	p.was, p.newest, p.apiResult, p.apiDue, p.calm, p.late = map[verdict.Class]bool{}, verdict.Round{}, verdict.Result{}, time.Time{}, 0, 0
}
