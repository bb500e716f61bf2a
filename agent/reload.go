package agent

import (
	"context"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
)

const (
	// rereadEvery is how often the configuration file is read. A ConfigMap's
	// volume changes by itself, a minute or so after the ConfigMap.
	rereadEvery = 10 * time.Second
	// maxJitter is the longest wait before a new configuration is in force, so
	// that the agents of a cluster do not all change their minds at once.
	maxJitter = 10 * time.Second
)

// reload is a new configuration, or why there is none.
type reload struct {
	cfg *config.Config
	err error
}

// reloader reads the configuration file again and again.
type reloader struct {
	path string
	// current is the hash of the configuration that was passed on last.
	current string
	// refused is the last error that was passed on.
	refused string
}

// run passes on what is new until the context ends: a valid configuration after
// a random wait, an error once.
func (r *reloader) run(ctx context.Context, out chan<- reload) {
	for sleep(ctx, rereadEvery) {
		cfg, err := config.Load(r.path)
		if !r.isNews(cfg, err) {
			continue
		}
		if err == nil && !sleep(ctx, time.Duration(rand.Int64N(int64(maxJitter)))) { //nolint:gosec // not a secret
			return
		}
		select {
		case <-ctx.Done():
			return
		case out <- reload{cfg, err}:
		}
	}
}

func (r *reloader) isNews(cfg *config.Config, err error) bool {
	if err != nil {
		isNew := err.Error() != r.refused
		r.refused = err.Error()
		return isNew
	}
	isNew := cfg.Hash != r.current || r.refused != "" // also back to what is in force
	r.current, r.refused = cfg.Hash, ""
	return isNew
}

// refuse keeps the configuration that is in force and says so.
func (l *loop) refuse(err error) {
	l.metrics.refused.Set(1)
	l.metrics.reloads.WithLabelValues("refused").Inc()
	l.Log.Error("configuration refused; the one in force stays", "inForce", l.cfg.Hash, "error", err)
	l.event(corev1.EventTypeWarning, "ConfigurationRefused", "configuration "+l.cfg.Hash+" stays in force: "+err.Error())
}

// reconfigure puts a configuration into force. Only probes that it changes
// start anew.
func (l *loop) reconfigure(ctx context.Context, cfg *config.Config) {
	before := l.cfg
	l.cfg = cfg
	l.facts.StandInPrefix = cfg.StandInPrefix
	for _, condition := range probes.Conditions() {
		if !config.SameProbe(before, cfg, condition) {
			l.state = l.state.Forget(condition)
			l.startProbe(ctx, condition)
		}
	}
	l.metrics.configured(cfg.Hash)
	l.metrics.reloads.WithLabelValues("applied").Inc()
	l.Log.Info("configuration in force", "hash", cfg.Hash, "before", before.Hash)
	if cfg.Hash != before.Hash {
		l.event(corev1.EventTypeNormal, "ConfigurationReloaded", "configuration "+cfg.Hash+" is in force, before it was "+before.Hash)
	}
}

// startProbe starts the probe of a condition by the configuration in force, in
// place of the one that runs.
func (l *loop) startProbe(ctx context.Context, condition probes.Condition) {
	if old := l.runners[condition]; old != nil {
		old.stop()
	}
	ctx, stop := context.WithCancel(ctx)
	probe := l.NewProbe(l.cfg, condition)
	period := time.Duration(float64(l.cfg.Period(condition)) * l.tempo)
	r := newRunner(probe, l.start, period, l.metrics, l.Log)
	r.stop = stop
	r.decided.Store(int32(l.state.Level(condition))) //nolint:gosec // a handful of levels
	l.runners[condition] = r
	l.health.expect(condition, l.cfg, l.Now())
	l.group.Go(func() { probe.Run(ctx) })
	l.group.Go(func() { r.run(ctx, l.observations) })
}
