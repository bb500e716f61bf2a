package sampling

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taintlet/taintlet/agent/metrics"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints/pace"
)

// sampleTimeout is how long one sample may take. A probe returns by then.
const sampleTimeout = 5 * time.Second

// runner asks one probe, in its period or when the kernel wakes it. After a bad sample it asks again
// soon, until the decider has seen enough.
type runner struct {
	probe       probes.Probe
	stop        context.CancelFunc
	start       time.Time // of the agent
	period      time.Duration
	minInterval time.Duration
	step        time.Duration // minInterval at this agent's tempo
	followUp    time.Duration
	metrics     *metrics.Metrics
	log         *slog.Logger
	out         chan<- Sample
	// measures are those of the newest sample.
	measures []probes.Measure
	// isUnreadable: it was logged that who took memory or tasks cannot be named.
	isUnreadable bool
	// decided is the level that the loop decided last.
	decided atomic.Int32
}

// Sample is a sample of a runner's probe.
type Sample struct {
	probes.Observation
	by *runner
}

// run takes samples until the context ends, and runs the probe's wait for wake-ups beside them.
func (r *runner) run(ctx context.Context) error {
	var waking sync.WaitGroup
	waking.Go(func() { r.probe.Run(ctx) })
	defer waking.Wait()
	for isFirst := true; ; isFirst = false {
		o := r.observe(ctx)
		if isFirst {
			r.log.Info("probe runs", "condition", string(r.probe.Condition()), "period", r.period)
		}
		if why := o.Culprit.Unreadable; why != "" && !r.isUnreadable {
			r.isUnreadable = true
			r.log.Warn("cannot name culprits on this host", "condition", string(o.Condition), "reason", why)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case r.out <- Sample{o, r}:
		}
		if !r.wait(ctx, o) {
			return ctx.Err()
		}
	}
}

func (r *runner) observe(ctx context.Context) probes.Observation {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	o := r.probe.Observe(ctx)
	if measurer, ok := r.probe.(probes.Measurer); ok {
		r.measures = measurer.Measures(r.measures[:0])
	}
	r.metrics.Sampled(o, r.measures)
	return o
}

// wait waits until the next sample is due, or woken; false when the context ended.
func (r *runner) wait(ctx context.Context, last probes.Observation) bool {
	begin := time.Now()
	timer := time.NewTimer(r.due(begin, last))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	case <-r.probe.Wake():
		return pace.Sleep(ctx, r.minInterval-time.Since(begin))
	}
}

// due is the time until the next sample. It is short after a bad sample that has not decided
// anything yet.
func (r *runner) due(now time.Time, last probes.Observation) time.Duration {
	next := r.untilNext(now, r.interval(last))
	switch {
	case r.decided.Load() != int32(probes.OK):
		return next
	case last.Level > probes.OK:
		return r.followUp
	case !last.Due.IsZero():
		return min(next, max(r.followUp, last.Due.Sub(now)))
	}
	return next
}

// interval is the time between two samples now: half of the time in which the threshold could be
// reached. A condition that is decided already, or whose probe cannot tell, is sampled at four steps.
func (r *runner) interval(last probes.Observation) time.Duration {
	interval := r.period
	switch {
	case last.Level != probes.OK || r.decided.Load() != int32(probes.OK):
		interval = 4 * r.step
	case last.Headroom > 0:
		interval = last.Headroom / 2
	}
	if interval >= r.period {
		return r.period
	}
	step := r.step
	for step*2 <= interval {
		step *= 2
	}
	return min(step, r.period)
}

// untilNext is the time until the next whole interval since the agent's start, or until the one
// after it if that is too soon. Each interval is a step that was doubled some times, so the probes
// of an agent take their samples in the same moments. On an idle host, waking up is most of an
// agent's cost.
func (r *runner) untilNext(now time.Time, interval time.Duration) time.Duration {
	due := interval - now.Sub(r.start)%interval
	if due < r.step/2 {
		due += interval
	}
	return due
}
