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
}

// run passes on each new error, and each new configuration after a random wait, until the context
// ends.
func (r *reloader) run(ctx context.Context) error {
	for pace.Sleep(ctx, rereadEvery) {
		cfg, err := r.load()
		if cfg == nil && err == nil {
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
