package agent

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
)

// observeTimeout is how long one look may take. A probe returns by then.
const observeTimeout = 5 * time.Second

// runner asks one probe, in its period or when the kernel wakes it. After a
// bad look it asks again soon, until the decider has seen enough.
type runner struct {
	probe   probes.Probe
	stop    context.CancelFunc
	start   time.Time // of the agent
	period  time.Duration
	pause   time.Duration
	metrics *metrics
	log     *slog.Logger
	// wakeMode is the one that was told last.
	wakeMode string
	// decided is the level that the loop decided last.
	decided atomic.Int32
}

// look is what a runner's probe saw.
type look struct {
	probes.Observation
	by *runner
}

func newRunner(probe probes.Probe, start time.Time, period time.Duration, m *metrics, log *slog.Logger) *runner {
	r := &runner{probe: probe, start: start, period: period, pause: config.FollowUp(probe.Condition()), metrics: m, log: log}
	r.decided.Store(int32(probes.OK))
	return r
}

// run looks until the context ends.
func (r *runner) run(ctx context.Context, out chan<- look) {
	for {
		o := r.observe(ctx)
		r.tellWakeMode()
		select {
		case <-ctx.Done():
			return
		case out <- look{o, r}:
		}
		if !r.wait(ctx, o) {
			return
		}
	}
}

func (r *runner) observe(ctx context.Context) probes.Observation {
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
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

// wait waits until the next look is due; false when the context ended. A
// wake-up brings it forward, but not so far that looks follow one another
// faster than the pause between them.
func (r *runner) wait(ctx context.Context, last probes.Observation) bool {
	begin := time.Now()
	due := r.untilDue(begin)
	if last.Level > probes.OK && r.decided.Load() == int32(probes.OK) {
		due = r.pause
	}
	timer := time.NewTimer(due)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	case <-r.probe.Wake():
		return sleep(ctx, r.pause-time.Since(begin))
	}
}

// untilDue is the time until the next whole period since the agent's start, so
// that the probes of one agent look at the same moments: on an idle host most
// of what the agent costs is being woken. The first such moment is skipped when
// it comes too soon after a look.
func (r *runner) untilDue(now time.Time) time.Duration {
	due := r.period - now.Sub(r.start)%r.period
	if due < r.pause {
		due += r.period
	}
	return due
}
