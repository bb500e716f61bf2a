package agent

import (
	"context"
	"log/slog"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/agent/pace"
	"github.com/taintlet/taintlet/probes"
)

// runners are the probes that run, one for each condition. The loop owns them.
type runners struct {
	newProbe func(config.Condition) probes.Probe
	fleet    *fleet.Fleet
	workers  workers
	metrics  *metrics
	log      *slog.Logger
	// start and tempo are those of all: the probes of one agent take their
	// samples at the same moments.
	start   time.Time
	tempo   float64
	samples chan sample
	running map[probes.Condition]*runner
}

func newRunners(newProbe func(config.Condition) probes.Probe, others *fleet.Fleet, workers workers, m *metrics, log *slog.Logger) *runners {
	return &runners{
		newProbe: newProbe, fleet: others, workers: workers, metrics: m, log: log,
		start: time.Now(), tempo: pace.Tempo(), samples: make(chan sample), running: map[probes.Condition]*runner{},
	}
}

// startProbe starts the probe of a condition, in place of that which runs. level is
// what was decided so far.
func (r *runners) startProbe(ctx context.Context, c config.Condition, level probes.Level) {
	if old := r.running[c.Name]; old != nil {
		old.stop()
	}
	ctx, stop := context.WithCancel(ctx)
	probe := r.newProbe(c)
	next := &runner{
		probe: probe, stop: stop, start: r.start, fleet: r.fleet, metrics: r.metrics, log: r.log, out: r.samples,
		period: r.atTempo(c.Common().Period.Duration), minInterval: c.MinInterval(), step: r.atTempo(c.MinInterval()), followUp: c.FollowUp(),
	}
	next.decided.Store(int32(level))
	r.running[c.Name] = next
	r.workers.startBrief(ctx, probe.Run)
	r.workers.start(ctx, "probe of "+string(c.Name), next.run)
}

func (r *runners) atTempo(d time.Duration) time.Duration {
	return time.Duration(float64(d) * r.tempo)
}

// isCurrent reports whether a sample is by a probe that still runs.
func (r *runners) isCurrent(s sample) bool { return s.by == r.running[s.Condition] }

// decided tells each runner the level that was decided, or that only the fleet
// brake holds back: no further sample would decide more.
func (r *runners) decided(state *decide.State) {
	for name, runner := range r.running {
		runner.decided.Store(int32(state.Requested(name)))
	}
}
