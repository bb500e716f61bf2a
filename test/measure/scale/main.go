// Command scale measures what thousands of agents cost one API server. The agents
// are all real but for their probes, which find what they are told to: API server,
// controllers and scheduler are real as well, and Nodes are kept alive as by
// kubelets.
//
//	go run ./test/measure/scale --nodes 1000   # or: make scale NODES=1000
//
// It prints a table, writes it to test/measure/scale/results, says of each thing that has to
// hold whether it does, and exits with 1 if one does not.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/test/measure"
)

type options struct {
	nodes                               int
	ramp, idle, base, restart, observed time.Duration
	refresh, limit                      time.Duration
	brake                               int
	parts                               []string // empty: all
	keep                                bool
	partial                             string // what a full run has and this one has not
	module                              string // its folder
	results                             string
}

func parse(args []string) (*options, error) {
	o := &options{}
	flags := pflag.NewFlagSet("scale", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.IntVar(&o.nodes, "nodes", 100, "how many Nodes")
	flags.DurationVar(&o.ramp, "ramp", 5*time.Minute, "the time in which all agents start: a heartbeat, so that they are evenly spread")
	flags.DurationVar(&o.idle, "idle", 10*time.Minute, "how long they are idle: whole heartbeats, and a refresh of the slices")
	flags.DurationVar(&o.base, "base", time.Minute, "how long the cluster is measured without agents")
	flags.DurationVar(&o.restart, "restart", 50*time.Second, "the time in which all agents are restarted, a tenth at a time")
	flags.DurationVar(&o.observed, "observed", 0, "how long each incident is observed (default 1m0s, and 10 s more than the last taint may take)")
	flags.DurationVar(&o.refresh, "refresh", 10*time.Minute, "how long the agents are observed after their EndpointSlices have changed")
	flags.DurationVar(&o.limit, "limit", 3*time.Hour, "stop after this time, and report what was measured by then")
	flags.StringSliceVar(&o.parts, "parts", nil, "measure these alone, in the order of a full run: "+strings.Join(partNames(), ", "))
	flags.BoolVar(&o.keep, "keep", false, "keep the logs")
	flags.StringVar(&o.results, "results", "", "where results are written (default: test/measure/scale/results)")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if len(flags.Args()) > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Args()[0])
	}
	if o.nodes < 20 {
		return nil, fmt.Errorf("--nodes %d: must be at least 20", o.nodes)
	}
	for _, part := range o.parts {
		if !slices.Contains(partNames(), part) {
			return nil, fmt.Errorf("--parts %s: must be one of %s", part, strings.Join(partNames(), ", "))
		}
	}
	usual := max(time.Minute, lastTaintWithin(o.nodes)+settle)
	o.observed = cmp.Or(o.observed, usual)
	o.partial = partialBy(flags, o.parts, usual)
	o.brake = config.Default().FleetBrake.Percent
	return o, nil
}

// partialBy says what a full run has and this one has not; empty: nothing. observed is how
// long a full run of this size observes an incident.
func partialBy(flags *pflag.FlagSet, parts []string, observed time.Duration) string {
	var all []string
	if len(parts) > 0 {
		all = append(all, "only "+strings.Join(parts, ", "))
	}
	flags.Visit(func(f *pflag.Flag) {
		given, err := time.ParseDuration(f.Value.String())
		usual, defaultErr := time.ParseDuration(f.DefValue)
		if f.Name == "observed" {
			usual = observed
		}
		if err == nil && defaultErr == nil && given < usual && f.Name != "limit" {
			all = append(all, fmt.Sprintf("%s %s, not %s", f.Name, given, usual))
		}
	})
	return strings.Join(all, "; ")
}

func main() {
	if len(os.Args) == 3 && !strings.HasPrefix(os.Args[1], "-") {
		if err := serveChild(os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(measure.ExitFailed)
		}
		return
	}
	o, err := parse(os.Args[1:])
	os.Exit(measure.Main("scale", err, func(ctx context.Context, module string) (bool, error) {
		o.module, o.results = module, cmp.Or(o.results, filepath.Join(module, "test", "measure", "scale", "results"))
		return runAll(ctx, o)
	}))
}

// runAll runs everything, prints and writes the results, and reports whether all
// holds that has to.
func runAll(ctx context.Context, o *options) (holds bool, err error) {
	s, err := setUp(ctx, o)
	defer func() { err = errors.Join(err, s.tearDown()) }()
	if err != nil {
		return false, err
	}
	r := &run{stage: s, f: &figures{Origin: measure.Here(o.module), Nodes: o.nodes, Partial: o.partial, CPUs: runtime.NumCPU(), Admission: map[string]float64{}}}
	if err := r.all(ctx); err != nil {
		return false, err
	}
	known, err := readResults(o.results)
	if err != nil {
		return false, err
	}
	lines := judge(r.f, ofOtherSizes(newestFull(known), o.nodes))
	text := render(r.f, lines)
	fmt.Print(text)
	fails := slices.ContainsFunc(lines, func(l line) bool { return l.verdict == no })
	return !fails, writeResults(o.results, r.f, text)
}
