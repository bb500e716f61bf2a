package agent

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// sampleTimeout is how long one sample may take. A probe returns by then.
const sampleTimeout = 5 * time.Second

// runner asks one probe, in its period or when the kernel wakes it. After a
// bad sample it asks again soon, until the decider has seen enough.
type runner struct {
	probe       probes.Probe
	stop        context.CancelFunc
	start       time.Time // of the agent
	period      time.Duration
	minInterval time.Duration
	metrics     *metrics
	log         *slog.Logger
	out         chan<- sample
	// wakeMode is what was told last.
	wakeMode string
	// decided is the level that the loop decided last.
	decided atomic.Int32
}

// sample is what a runner's probe found.
type sample struct {
	probes.Observation
	by *runner
}

// run takes samples until the context ends.
func (r *runner) run(ctx context.Context) error {
	for {
		o := r.observe(ctx)
		r.tellWakeMode()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case r.out <- sample{o, r}:
		}
		if !r.wait(ctx, o) {
			return ctx.Err()
		}
	}
}

func (r *runner) observe(ctx context.Context) probes.Observation {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	begin := time.Now()
	o := r.probe.Observe(ctx)
	r.metrics.timed(o, time.Since(begin))
	return o
}

// tellWakeMode logs and shows what wakes the probe, when that is new.
func (r *runner) tellWakeMode() {
	mode := r.probe.WakeMode()
	if mode == r.wakeMode {
		return
	}
	r.wakeMode = mode
	r.log.Info("probe runs", "condition", string(r.probe.Condition()), "period", r.period, "woken", mode)
	short, _, _ := strings.Cut(mode, ":") // without the reason
	r.metrics.wakeModeIs(r.probe.Condition(), short)
}

// wait waits until the next sample is due; false when the context ended. A
// wake-up brings it forward, but never below the shortest interval.
func (r *runner) wait(ctx context.Context, last probes.Observation) bool {
	begin := time.Now()
	due := r.untilDue(begin)
	if last.Level > probes.OK && r.decided.Load() == int32(probes.OK) {
		due = r.minInterval
	}
	timer := time.NewTimer(due)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	case <-r.probe.Wake():
		return sleep(ctx, r.minInterval-time.Since(begin))
	}
}

// untilDue is the time until the next whole period since the agent's start. The
// probes of one agent so take their samples at the same moments: on an idle
// host most of what the agent costs is being woken. The first such moment is
// skipped when it comes too soon after a sample.
func (r *runner) untilDue(now time.Time) time.Duration {
	due := r.period - now.Sub(r.start)%r.period
	if due < r.minInterval {
		due += r.period
	}
	return due
}
