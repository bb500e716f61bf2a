package agent

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/pace"
)

const (
	// rereadEvery is how often the configuration file is read. A ConfigMap's
	// volume changes by itself, a minute or so after the ConfigMap.
	rereadEvery = 10 * time.Second
	// jitterPerSlice is the longest wait before a new configuration is in force, for
	// each EndpointSlice of the agents and so for some 100 of them: the agents of a
	// cluster must not all change their minds at once, and the fleet brake needs time
	// to see the first victims. maxJitter is the longest wait of all.
	jitterPerSlice = 10 * time.Second
	maxJitter      = 5 * time.Minute
)

// reload is a new configuration, or why there is none.
type reload struct {
	cfg *config.Config
	err error
}

// reloader reads the configuration again and again.
type reloader struct {
	load func() (*config.Config, error)
	news chan<- reload
	// slices is how many EndpointSlices the agents have.
	slices func() int
	// current is the hash of the configuration that was passed on last.
	current string
	// refused is the last error that was passed on.
	refused string
}

// run passes on what is new until the context ends: a valid configuration after
// a random wait, an error once.
func (r *reloader) run(ctx context.Context) error {
	for pace.Sleep(ctx, rereadEvery) {
		cfg, err := r.load()
		if !r.isNews(cfg, err) {
			continue
		}
		if err == nil && !pace.Sleep(ctx, pace.UpTo(r.jitter())) {
			break
		}
		select {
		case <-ctx.Done():
		case r.news <- reload{cfg, err}:
		}
	}
	return ctx.Err()
}

// jitter is the longest wait now.
func (r *reloader) jitter() time.Duration {
	return min(maxJitter, time.Duration(max(1, r.slices()))*jitterPerSlice)
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
	// Not as an error: two files are two lines, however soon they follow each other.
	l.Log.Error("configuration refused; the one in force stays", "inForce", l.cfg.Hash, "reason", err.Error())
	l.event(corev1.EventTypeWarning, "ConfigurationRefused", "configuration "+l.cfg.Hash+" stays in force: "+err.Error())
}

// reconfigure puts a configuration into force. Only probes that it changes
// start anew.
func (l *loop) reconfigure(ctx context.Context, cfg *config.Config) {
	before := l.cfg
	l.cfg, l.deciderPolicy = cfg, cfg.Policy()
	l.facts.StandInPrefix = cfg.StandInPrefix
	for _, next := range cfg.Conditions {
		if old, known := before.Condition(next.Name); !known || !config.SameProbe(old, next) {
			l.state = l.state.Forget(next.Name)
			l.startProbe(ctx, next)
		}
	}
	l.metrics.configured(cfg)
	l.metrics.reloads.WithLabelValues("applied").Inc()
	l.Log.Info("configuration in force", "hash", cfg.Hash, "before", before.Hash)
	if cfg.Hash != before.Hash {
		l.event(corev1.EventTypeNormal, "ConfigurationReloaded", "configuration "+cfg.Hash+" is in force, before it was "+before.Hash)
	}
}

// startProbe starts the probe of a condition, in place of that which runs.
func (l *loop) startProbe(ctx context.Context, c config.Condition) {
	l.health.expect(c, l.Now())
	l.probes.startProbe(ctx, c, l.state.Level(c.Name))
}
