// Package sampling takes samples: one runner for each condition asks its probe in time.
package sampling

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/metrics"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints/pace"
)

// Runners ask the probes that run, one for each condition. The loop of the agent calls their methods.
type Runners struct {
	// Samples are those of all probes.
	Samples chan Sample

	newProbe    func(config.Condition) probes.Probe
	startWorker StartWorker
	metrics     *metrics.Metrics
	log         *slog.Logger
	// start and tempo are those of all, so that samples are taken at the same moments.
	start   time.Time
	tempo   float64
	running map[probes.Condition]*runner
}

// StartWorker runs a worker of the agent until the context ends.
type StartWorker func(ctx context.Context, name string, run func(context.Context) error)

// NewRunners returns Runners of which none runs yet.
func NewRunners(newProbe func(config.Condition) probes.Probe, startWorker StartWorker, m *metrics.Metrics, log *slog.Logger) *Runners {
	return &Runners{
		newProbe: newProbe, startWorker: startWorker, metrics: m, log: log,
		start: time.Now(), tempo: pace.Tempo(), Samples: make(chan Sample), running: map[probes.Condition]*runner{},
	}
}

// Start starts the probe of a condition, and stops an earlier one. level is the decided level.
func (r *Runners) Start(ctx context.Context, c config.Condition, level probes.Level) {
	if old := r.running[c.Name]; old != nil {
		old.stop()
	}
	ctx, stop := context.WithCancel(ctx)
	s := c.Common()
	next := &runner{
		probe: r.newProbe(c), stop: stop, start: r.start, metrics: r.metrics, log: r.log, out: r.Samples,
		period: r.atTempo(s.Period.Duration), minInterval: s.MinInterval, step: r.atTempo(s.MinInterval), followUp: cmp.Or(s.FollowUp, s.Period.Duration),
	}
	next.decided.Store(int32(level))
	r.running[c.Name] = next
	r.startWorker(ctx, "probe of "+string(c.Name), next.run)
}

// Stop stops the probe of a condition that is dropped.
func (r *Runners) Stop(name probes.Condition) {
	if old := r.running[name]; old != nil {
		old.stop()
		delete(r.running, name)
	}
}

func (r *Runners) atTempo(d time.Duration) time.Duration {
	return time.Duration(float64(d) * r.tempo)
}

// IsCurrent reports whether a sample is by a probe that still runs.
func (r *Runners) IsCurrent(s Sample) bool { return s.by == r.running[s.Condition] }

// Decided passes the decided levels on to the runners. A level that the fleet brake holds back
// counts as decided, because no further sample would change the decision.
func (r *Runners) Decided(state *decide.State) {
	for name, runner := range r.running {
		runner.decided.Store(int32(state.Requested(name)))
	}
}
