package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/cmd/terminal"
)

func statusVerb() *cobra.Command {
	var o status.Options
	var cluster command.Cluster
	var timeout time.Duration
	c := &cobra.Command{
		Use: "status [NODE…]", Short: "show which Nodes of the cluster are not well, and what taintlet did",
		Long: `Show which Nodes of the cluster are not well, and what taintlet did.

It prints one line about the fleet, then a row for each condition that is not well: since
when, the taint and how it stays, when it clears, what holds it back, and the value against the
threshold. If you name Nodes, it prints all of their conditions. It reads the Nodes from the API
server, asks no agent and changes nothing.

An agent is silent when it has not written its Node for two and a half heartbeats. --silent-after has
to fit a heartbeat other than 5 minutes.

Exit code 3: an agent is silent, a condition is not OK, or there is no agent.`,
		Example: `  # Is the fleet well?
  kubectl taintlet status
  # Why does this Node have a taint?
  kubectl taintlet status worker-3
  # Follow an incident
  kubectl taintlet status --watch
  # Wait for its end in a script
  kubectl taintlet status --wait --timeout=30m`,
		Args: nodeNames,
		RunE: func(c *cobra.Command, args []string) (err error) {
			if o.Watch && o.Wait {
				return command.Usagef("--watch and --wait exclude each other")
			}
			ctx := c.Context()
			if timeout > 0 && o.Wait {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			o.Nodes, o.Out, o.Err = args, c.OutOrStdout(), c.ErrOrStderr()
			if screen := terminal.NewScreen(c.OutOrStdout()); screen.IsTerminal {
				o.Draw, o.Lines = screen.Draw, func() int { _, lines := screen.Size(); return lines }
			}
			if o.Config, err = cluster.RestConfig(); err != nil {
				return err
			}
			isWell, err := status.Run(ctx, o)
			if err == nil && !isWell && !o.Watch {
				return command.ErrNotWell
			}
			return err
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	command.AddChoice(c, &o.Output, "output", "o", "table, wide, json or yaml", status.OutputTable, status.OutputWide, status.OutputJSON, status.OutputYAML)
	flags.BoolVarP(&o.Watch, "watch", "w", false, "print again when something changes, at most once a second, until a signal comes")
	flags.BoolVar(&o.Wait, "wait", false, "wait until all is well")
	flags.DurationVar(&timeout, "timeout", 0, "how long --wait waits (default: for ever)")
	flags.DurationVar(&o.SilentAfter, "silent-after", status.DefaultSilentAfter, "how long an agent may give no sign; 0: for ever")
	cluster.Add(flags)
	return c
}

// nodeNames refuses arguments that can be no Node's name.
func nodeNames(_ *cobra.Command, args []string) error {
	for _, name := range args {
		if err := command.CheckNodeName("node", name); err != nil {
			return err
		}
	}
	return nil
}
