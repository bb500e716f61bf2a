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
Node where the admission policy of deploy/keep.yaml is installed.`,
		examples: []example{
			{"Is this host well?", "taintlet once"},
			{"For a bug report", "taintlet once -o yaml"},
			{"By the thresholds of a file", "taintlet once --config=config.yaml"},
		},
		notWell: "a condition is not OK",
		bind: func(flags *pflag.FlagSet) func(context.Context, call) error {
			s := &sampler{}
			var output string
			addChoice(flags, &output, "output", "o", "table, json or yaml", "table", "json", "yaml")
			s.add(flags)
			return func(ctx context.Context, c call) error {
				if err := s.load(); err != nil {
					return err
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
