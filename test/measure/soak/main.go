// Command soak watches one agent for a long time, from outside: its memory, its
// goroutines and its descriptors must not grow.
//
//	go run ./test/measure/soak            # a week with incidents, accelerated; or: make soak
//	go run ./test/measure/soak --real 1h  # the shipped program at its own pace
//
// It prints a table, writes it to test/measure/soak/results, says of each thing that has to
// hold whether it does, and exits with 1 if one does not.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/taintlet/taintlet/test/measure"
)

type options struct {
	real    time.Duration
	days    float64
	short   bool
	seed    uint64
	leak    string
	keep    bool
	module  string // its folder
	results string
}

func parse(args []string) (*options, error) {
	o := &options{}
	flags := pflag.NewFlagSet("soak", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Float64Var(&o.days, "days", 7, fmt.Sprintf("how many days of work the agent does, %d times as fast", pace))
	flags.BoolVar(&o.short, "short", false, "two days, in four minutes")
	flags.Uint64Var(&o.seed, "seed", 1, "decides when which incident happens")
	flags.StringVar(&o.leak, "leak", "", "build a mistake into the agent, which has to be found: memory, goroutines or descriptors")
	flags.DurationVar(&o.real, "real", 0, "watch the shipped program at its own pace for this time, and no accelerated week")
	flags.BoolVar(&o.keep, "keep", false, "keep the logs")
	flags.StringVar(&o.results, "results", "", "where results are written (default: test/measure/soak/results)")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if len(flags.Args()) > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Args()[0])
	}
	if _, known := leaks()[o.leak]; o.leak != "" && !known {
		return nil, fmt.Errorf("--leak %s: must be memory, goroutines or descriptors", o.leak)
	}
	if o.short {
		o.days = 2
	}
	return o, nil
}

func main() {
	o, err := parse(os.Args[1:])
	os.Exit(measure.Main("soak", err, func(ctx context.Context, module string) (bool, error) {
		o.module, o.results = module, cmp.Or(o.results, filepath.Join(module, "test", "measure", "soak", "results"))
		return soak(ctx, o)
	}))
}

// soak runs everything, prints and writes the result, and reports whether all holds
// that has to.
func soak(ctx context.Context, o *options) (holds bool, err error) {
	f := &figures{Origin: measure.Here(o.module)}
	s, err := setUp(ctx, o)
	defer func() { err = errors.Join(err, s.tearDown()) }()
	if err != nil {
		return false, err
	}
	watch := s.days
	if o.real > 0 {
		watch = s.hour
	}
	if err := watch(ctx, f); err != nil {
		return false, err
	}
	f.Tenths = tenths(f.Samples)
	lines := judge(f)
	text := render(f, lines)
	fmt.Print(text)
	return allHold(lines), writeResult(o.results, f, text)
}
