package network

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

// clock says when a round begins, by CLOCK_BOOTTIME as the decider has it, and for how
// long the host has slept since it was booted. Go's own monotonic clock stands still
// while the host sleeps (clock_gettime(2)).
type clock func() (at time.Time, slept time.Duration)

// hostClock is the host's clock.
func hostClock() (at time.Time, slept time.Duration) {
	var boot, awake unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) // neither clock can go away
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake)
	return time.Unix(0, boot.Nano()), time.Duration(boot.Nano() - awake.Nano())
}

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

// beat is how often the ticker of a round ticks. A round in which all is well
// ends before the first tick.
//
// lateAfter is how late a tick or the control probe may be. A third of the
// patience is then gone, and the network has the rest. On two processors, with 8
// programs that take all they get, ticks came 66 ms late at most, with 64 of them
// 302 ms, and no class failed for it.
const (
	beat      = 100 * time.Millisecond
	lateAfter = 500 * time.Millisecond
)

// lateness ticks until the context ends and returns by how much the latest tick
// was late. A process that stands still, or gets no processor, does not notice
// that an answer came in time.
func lateness(ctx context.Context) (latest time.Duration) {
	timer := time.NewTimer(beat)
	defer timer.Stop()
	for {
		begin := time.Now()
		select {
		case <-ctx.Done():
			return max(latest, time.Since(begin)-beat)
		case <-timer.C:
			latest = max(latest, time.Since(begin)-beat)
			timer.Reset(beat)
		}
	}
}
