package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/taintlet/taintlet/agent/status"
)

func statusVerb() verb {
	return verb{
		name:      "status",
		arguments: "[NODE…]",
		summary:   "show which Nodes of the cluster are not well, and what taintlet did",
		about: `It prints one line about the fleet, then a row for each condition that is not well: since
when, the taint and how it stays, when it clears, what holds it back, and the value against the
threshold. If you name Nodes, it prints all of their conditions. It reads the Nodes from the API
server, asks no agent and changes nothing.

An agent is silent when it has not written its Node for two and a half heartbeats. --silent-after has
to fit a heartbeat other than 5 minutes.`,
		examples: []example{
			{"Is the fleet well?", "taintlet status"},
			{"Why does this Node have a taint?", "taintlet status worker-3"},
			{"Follow an incident", "taintlet status --watch"},
			{"Wait for its end in a script", "taintlet status --wait --timeout=30m"},
		},
		notWell: "an agent is silent, a condition is not OK, or there is no agent",
		bind: func(flags *pflag.FlagSet) func(context.Context, call) error {
			var o status.Options
			var cluster clusterFlags
			var timeout time.Duration
			addChoice(flags, &o.Output, "output", "o", "table, wide, json or yaml", status.OutputTable, status.OutputWide, status.OutputJSON, status.OutputYAML)
			flags.BoolVarP(&o.Watch, "watch", "w", false, "print again when something changes, at most once a second, until a signal comes")
			flags.BoolVar(&o.Wait, "wait", false, "wait until all is well")
			flags.DurationVar(&timeout, "timeout", 0, "how long --wait waits (default: for ever)")
			flags.DurationVar(&o.SilentAfter, "silent-after", status.DefaultSilentAfter, "how long an agent may give no sign; 0: for ever")
			cluster.add(flags)
			return func(ctx context.Context, c call) error {
				if o.Watch && o.Wait {
					return usageError{errors.New("--watch and --wait exclude each other")}
				}
				for _, name := range c.args {
					if err := checkNodeName("node", name); err != nil {
						return err
					}
				}
				if timeout > 0 && o.Wait {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, timeout)
					defer cancel()
				}
				o.Nodes, o.Out, o.Err = c.args, c.stdout, c.stderr
				if screen := newScreen(c.stdout); screen.isTerminal {
					o.Draw, o.Lines = screen.draw, screen.lines
				}
				return runStatus(ctx, o, cluster)
			}
		},
	}
}

func runStatus(ctx context.Context, o status.Options, cluster clusterFlags) error {
	var err error
	if o.Config, err = cluster.restConfig(); err != nil {
		return err
	}
	isWell, err := status.Run(ctx, o)
	if err == nil && !isWell && !o.Watch {
		return errNotWell
	}
	return err
}
