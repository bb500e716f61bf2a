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

It asks every probe once and prints what the rules would ask for. It contacts no API server
and changes nothing. SEVERITY 50 is the threshold of Degraded. VIA says how a taint is kept on the
Node where the admission policy of deploy/keep.yaml is installed.

Exit code 3: a condition is not OK.`,
		Example: `  # Is this host well?
  taintlet once
  # For a bug report
  taintlet once -o yaml
  # By the thresholds of a file
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
