// Command bench measures what taintlet costs and how soon it is, beside programs
// that people know:
//
//   - its memory, CPU time, sizes and starts, beside prometheus/node_exporter
//   - how long after a threshold is crossed its taint is there, beside a kubelet
//
// It prints tables and writes them to test/measure/bench/results:
//
//	go run ./test/measure/bench                  # all of it, or: make bench
//	go run ./test/measure/bench --short          # to try it: everything, quickly and badly
//	go run ./test/measure/bench --parts kubelet --only pid --runs 3
//
// The README beside it says what is compared and how.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/measure/bench/footprint"
)

// The parts of a run, in their order.
const (
	footprintPart = "footprint"
	kubeletPart   = "kubelet"
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case takeMemory:
			os.Exit(runChild(takeMemory, os.Args[2:], memoryChild))
		case takeTasks:
			os.Exit(runChild(takeTasks, os.Args[2:], tasksChild))
		case footprint.ChildName:
			os.Exit(footprint.Child(os.Args[2], measure.Say))
		}
	}
	o, err := parse(os.Args[1:])
	os.Exit(measure.Main("bench", err, func(ctx context.Context, module string) (bool, error) {
		return true, (&bench{options: o, module: module}).parts(ctx)
	}))
}

type options struct {
	parts            []string
	short            bool
	results          string
	warmUp, measured time.Duration
	starts           int
	runs             int
	only             []string
	notified         bool
	agent            string
}

func allParts() []string { return []string{footprintPart, kubeletPart} }

func parse(args []string) (*options, error) {
	o := &options{starts: 10}
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.StringSliceVar(&o.parts, "parts", allParts(), "what is measured")
	flags.BoolVar(&o.short, "short", false, "try it: one run of each and seconds of each steady state, for figures that mean nothing")
	flags.StringVar(&o.results, "results", "", "where results are written (default: test/measure/bench/results if everything was measured, else bin/bench)")
	flags.DurationVar(&o.warmUp, "warm-up", 2*time.Minute, "how long the programs of the footprint run before they are measured")
	flags.DurationVar(&o.measured, "measured", 10*time.Minute, "how long the programs of the footprint are measured")
	flags.IntVar(&o.runs, "runs", 10, "how often each is measured beside the kubelet")
	flags.StringSliceVar(&o.only, "only", subjectNames(), "what is measured beside the kubelet")
	flags.BoolVar(&o.notified, "memcg-notification", false, "let the kernel tell the kubelet that memory crosses its threshold (off in a kubelet by default)")
	flags.StringVar(&o.agent, "agent", "", "the agent's binary beside the kubelet (default: built from here)")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if len(flags.Args()) > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Args()[0])
	}
	if o.short {
		o.starts, o.runs = 2, 1
		o.warmUp, o.measured = 5*time.Second, 20*time.Second
	}
	return o, o.check()
}

func (o *options) check() error {
	if o.runs < 1 {
		return fmt.Errorf("--runs %d: must be at least 1", o.runs)
	}
	if o.measured <= 0 {
		return fmt.Errorf("--measured %s: must be more than nothing", o.measured)
	}
	for _, choice := range []struct {
		flag          string
		chosen, known []string
	}{{"parts", o.parts, allParts()}, {"only", o.only, subjectNames()}} {
		for _, name := range choice.chosen {
			if !slices.Contains(choice.known, name) {
				return fmt.Errorf("--%s %q: must be some of %v", choice.flag, name, choice.known)
			}
		}
	}
	return nil
}

// resultsFolder is where complete results are, and triesFolder where the others
// are, seen from the module's folder.
const (
	resultsFolder = "test/measure/bench/results"
	triesFolder   = "bin/bench"
)

// bench is one run.
type bench struct {
	options *options
	module  string // its folder
}

// parts measures part by part. A part that fails ends none of the others, and
// what was measured is written after each.
func (b *bench) parts(ctx context.Context) error {
	f := &figures{Origin: measure.Here(b.module), Short: b.options.short}
	var failed error
	for _, part := range b.options.parts {
		measure.Say("part %s begins", part)
		if err := b.measurePart(ctx, part, f); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", part, err))
			measure.Say("part %s failed: %v", part, err)
			f.Failed = append(f.Failed, part)
		}
		if err := b.write(f); err != nil {
			return errors.Join(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	fmt.Print(render(f))
	return failed
}

func (b *bench) measurePart(ctx context.Context, part string, f *figures) (err error) {
	switch part {
	case footprintPart:
		f.Footprint, err = footprint.Measure(ctx, footprint.Options{
			Module: b.module, Commit: f.Commit, WarmUp: b.options.warmUp, Measured: b.options.measured, Starts: b.options.starts, Say: measure.Say,
		})
	case kubeletPart:
		f.Latencies, err = measureLatencies(ctx, b.options)
	}
	return err
}

// write writes the results.
func (b *bench) write(f *figures) error {
	folder := b.options.results
	switch {
	case folder != "":
	case f.isComplete():
		folder = filepath.Join(b.module, resultsFolder)
	default:
		folder = filepath.Join(b.module, triesFolder)
	}
	path, err := measure.Write(folder, f.Date, f, render(f))
	if err == nil {
		measure.Say("written to %s", path)
	}
	return err
}
