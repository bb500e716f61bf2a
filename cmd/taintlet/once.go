package main

import (
	"context"
	"time"

	"github.com/spf13/pflag"
)

// onceTimeout is how long the probes may take together.
const onceTimeout = 10 * time.Second

func onceVerb() verb {
	return verb{
		name:    "once",
		summary: "take one sample of this host and print it",
		about: `It asks every probe once and prints what the rules would ask for. It contacts no API server
and changes nothing. SEVERITY 50 is the threshold of Degraded. VIA says how a taint is kept on the
Node where the admission policy of deploy/keep.yaml is installed.

With --record it writes samples as CSV instead, each with the quantities that its probe judged by. An
hour takes about 2 MB. "taintlet config --replay" tells what a configuration would have done on them.`,
		examples: []example{
			{"Is this host well?", "taintlet once"},
			{"For a bug report", "taintlet once -o yaml"},
			{"By the thresholds of a file", "taintlet once --config=config.yaml"},
			{"Record ten minutes, to try thresholds on", "taintlet once --record=host.csv --for=10m"},
		},
		notWell: "a condition is not OK",
		bind: func(flags *pflag.FlagSet) func(context.Context, call) error {
			s, recording := &sampler{}, &recordOptions{}
			var output string
			addChoice(flags, &output, "output", "o", "table, json or yaml", "table", "json", "yaml")
			recording.add(flags)
			s.add(flags)
			return func(ctx context.Context, c call) error {
				if err := recording.validate(flags); err != nil {
					return usageError{err}
				}
				if err := s.load(); err != nil {
					return err
				}
				if recording.path != "" {
					return recording.run(ctx, s, c.stdout)
				}
				r := s.sample(ctx)
				if err := r.print(output, c.stdout); err != nil {
					return err
				}
				if !r.isWell() {
					return errNotWell
				}
				return nil
			}
		},
	}
}
