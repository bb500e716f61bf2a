package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/taintlet/taintlet/cmd/command"
)

// onceTimeout is how long the probes may take together.
const onceTimeout = 10 * time.Second

func onceVerb() *cobra.Command {
	var s sampler
	var output string
	c := &cobra.Command{
		Use: "once", Short: "take one sample of this host and print it", Args: command.NoArguments,
		Long: `Take one sample of this host and print it.

It runs each probe once and prints the taints that the rules would set. It contacts no API server and
changes nothing. SEVERITY 50 is the threshold of Degraded. VIA is the way in which a taint stays on the
Node, with deploy/keep.yaml installed.

Exit code 3: a condition is not OK.`,
		Example: `  # Is this host healthy?
  taintlet once
  # For a bug report
  taintlet once -o yaml
  # With the thresholds of a file
  taintlet once --config=config.yaml`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.load(); err != nil {
				return err
			}
			r := s.sample(c.Context())
			if err := r.print(output, c.OutOrStdout()); err != nil {
				return err
			}
			if !r.isWell() {
				return command.ErrNotWell
			}
			return nil
		},
	}
	c.Flags().SortFlags = false
	command.AddChoice(c, &output, "output", "o", "table, json or yaml", "table", "json", "yaml")
	s.add(c.Flags())
	return c
}
