package agent

import (
	"context"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/taints/pace"
)

const (
	// rereadEvery is how often the configuration file is read. The kubelet changes a ConfigMap's
	// volume about a minute after the ConfigMap.
	rereadEvery = 10 * time.Second
	// jitterPerSlice is the longest wait before a new configuration is in force, for each
	// EndpointSlice of the agents. A slice has about 100 agents. The agents of a cluster must not
	// all change their minds at once, and the fleet brake needs time to see the first victims.
	// maxJitter is the longest wait of all.
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
	load    func() (*config.Config, error)
	reloads chan<- reload
	// crowd is the time in which all agents write once: a second for each hundred of them.
	crowd func() time.Duration
	// current is the hash of the configuration that was passed on last.
	current string
	// refused is the last error that was passed on.
	refused string
}

// run passes on changes until the context ends: a valid configuration after a random wait, an error
// once.
func (r *reloader) run(ctx context.Context) error {
	for pace.Sleep(ctx, rereadEvery) {
		cfg, err := r.load()
		if !r.isNew(cfg, err) {
			continue
		}
		if err == nil && !pace.Sleep(ctx, pace.UpTo(r.jitter())) {
			break
		}
		select {
		case <-ctx.Done():
		case r.reloads <- reload{cfg, err}:
		}
	}
	return ctx.Err()
}

// jitter is the longest wait now.
func (r *reloader) jitter() time.Duration {
	return min(maxJitter, max(1, r.crowd()/time.Second)*jitterPerSlice)
}

func (r *reloader) isNew(cfg *config.Config, err error) bool {
	if err != nil {
		differs := err.Error() != r.refused
		r.refused = err.Error()
		return differs
	}
	differs := cfg.Hash != r.current || r.refused != "" // also back to what is in force
	r.current, r.refused = cfg.Hash, ""
	return differs
}
