// Package agent joins the probes, the decider and the Node: it runs the loop that takes in
// observations and versions of the Node and hands out the desired state.
package agent

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/agent/node"
	"github.com/taintlet/taintlet/agent/sampling"
	"github.com/taintlet/taintlet/agent/serve"
	"github.com/taintlet/taintlet/agent/slots"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Recorder takes Events and does not wait for the API server. It is the part of
// client-go's record.EventRecorder that is used.
type Recorder interface {
	Event(node *taints.Node, kind, reason, message string)
}

// Agent is one agent for one Node. All fields but Reload and Fleet are needed.
type Agent struct {
	Config *config.Config
	// Reload returns a new configuration or error, as Schema.Reloader does; nil: it never changes.
	Reload func() (*config.Config, error)
	// NewProbe makes the probe of a condition, and makes it again when its section changes. Package
	// hostprobes makes the probes of a host.
	NewProbe func(config.Condition) probes.Probe
	Client   node.Client
	// Slots bound evictions across the fleet.
	Slots slots.Client
	// Fleet is the agents on other Nodes; nil: there are none.
	Fleet *fleet.Fleet
	// Recorder takes the Events about the Node.
	Recorder Recorder
	Log      *slog.Logger
	// Instance is the name of this process; no other may have it.
	Instance string
	// Boot is the host's boot, Now the clock that it is measured on.
	Boot decide.Boot
	Now  func() time.Time
	// Version is shown in metrics.
	Version string
}

// Run runs the agent until the context ends, and serves HTTP on the listener (nil: none). Taints
// stay on the Node when it returns. It returns nil after the end of the context, and an error if a
// worker ended before.
func (a *Agent) Run(ctx context.Context, listener net.Listener) error {
	group, ctx := errgroup.WithContext(ctx)
	start := starter(group)
	l := newLoop(a, start)
	reloader := &reloader{load: a.Reload, reloads: l.reloads, crowd: l.fleet.Crowd}
	server := &serve.Server{Listener: listener, Metrics: l.metrics, Health: l.health, Fleet: l.fleet, Now: a.Now, Log: a.Log}
	// The loop starts one more worker for each probe.
	for _, w := range []worker{
		{name: "watch of the node", run: l.watch.Run},
		{name: "lookup of the admission policy", run: l.policy.Run},
		{name: "eviction slot", run: l.slots.Run},
		{name: "lookup of the fleet", run: l.fleet.Run},
		{name: "writer", run: l.outbox.Run},
		{name: "reload of the configuration", run: reloader.run, isAbsent: a.Reload == nil},
		{name: "http server", run: server.Run, isAbsent: listener == nil},
		{name: "loop", run: l.run},
	} {
		if !w.isAbsent {
			start(ctx, w.name, w.run)
		}
	}
	return group.Wait()
}

// worker is a goroutine that runs as long as the agent.
type worker struct {
	name string
	run  func(context.Context) error
	// isAbsent: this agent has no use for it.
	isAbsent bool
}

// starter starts workers of a group: goroutines of one owner, which end with the context.
// When a worker ends before that, all others end too, and the group's error has its name.
func starter(group *errgroup.Group) sampling.StartWorker {
	return func(ctx context.Context, name string, run func(context.Context) error) {
		group.Go(func() error {
			err := run(ctx)
			switch {
			case ctx.Err() != nil:
				return nil
			case err == nil:
				return fmt.Errorf("%s ended", name)
			}
			return fmt.Errorf("%s ended: %w", name, err)
		})
	}
}
