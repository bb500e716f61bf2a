// Package bench measures what taintlet costs and how soon it is, beside programs
// that people know:
//
//   - its memory, CPU time, sizes and starts, beside prometheus/node_exporter
//   - how long after a threshold is crossed its taint is there, beside a kubelet
//
// TestBench runs it, by make bench. The README beside it says what is compared and how.
package bench

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/taintlet/taintlet/test/measure"
)

// benchEnv has the options of TestBench.
const benchEnv = "TAINTLET_BENCH"

// The parts of a run, in their order.
const (
	footprintPart = "footprint"
	kubeletPart   = "kubelet"
)

// TestMain is also the beginning of each child process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case takeMemory:
			os.Exit(runChild(takeMemory, os.Args[2:], memoryChild))
		case takeTasks:
			os.Exit(runChild(takeTasks, os.Args[2:], tasksChild))
		}
	}
	os.Exit(m.Run())
}

// TestBench measures part by part. A part that fails ends none of the others, and
// what was measured is written after each.
func TestBench(t *testing.T) {
	args, isAsked := os.LookupEnv(benchEnv)
	if !isAsked {
		t.Skip("takes half an hour: make bench")
	}
	o, err := parse(strings.Fields(args))
	if err != nil {
		t.Fatal(err)
	}
	f := &figures{Origin: measure.Here("."), Short: o.short}
	for _, part := range o.parts {
		isDone := t.Run(part, func(t *testing.T) {
			switch part {
			case footprintPart:
				f.Footprint = measureFootprint(t, o, f.Commit)
			case kubeletPart:
				f.Latencies = measureLatencies(t, o)
			}
		})
		if !isDone {
			f.Failed = append(f.Failed, part)
		}
		path, err := measure.Write(f.folder(o), f.Date, f, render(f))
		if err != nil {
			t.Fatal(err)
		}
		measure.Say("written to %s", path)
	}
	t.Log("\n" + render(f))
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
	if o.runs < 1 {
		return nil, fmt.Errorf("--runs %d: must be at least 1", o.runs)
	}
	if o.measured <= 0 {
		return nil, fmt.Errorf("--measured %s: must be more than nothing", o.measured)
	}
	for _, choice := range []struct {
		flag          string
		chosen, known []string
	}{{"parts", o.parts, allParts()}, {"only", o.only, subjectNames()}} {
		for _, name := range choice.chosen {
			if !slices.Contains(choice.known, name) {
				return nil, fmt.Errorf("--%s %q: must be some of %v", choice.flag, name, choice.known)
			}
		}
	}
	return o, nil
}

// figures are what a run measured. A part that was not measured is nil.
type figures struct {
	measure.Origin
	// Short: they were measured too quickly to mean anything.
	Short bool
	// Failed are parts that were begun and not measured.
	Failed    []string
	Footprint *footprint
	Latencies []latency
}

// isComplete reports whether everything was measured.
func (f *figures) isComplete() bool {
	return !f.Short && f.Footprint != nil && f.Footprint.LeftOut == "" && len(f.Latencies) == len(subjects())
}

// folder is where the figures are written: only complete ones are results.
func (f *figures) folder(o *options) string {
	switch {
	case o.results != "":
		return o.results
	case f.isComplete():
		return "results"
	}
	return "../../../bin/bench"
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"--parts", "footprint,kubelet", "--runs", "3"})
	if err != nil || len(o.parts) != 2 || o.runs != 3 {
		t.Errorf("%v %+v", err, o)
	}
	if o, err := parse([]string{"--short"}); err != nil || o.runs != 1 || len(o.parts) != len(allParts()) {
		t.Errorf("%v %+v", err, o)
	}
	for _, bad := range [][]string{{"--runs", "0"}, {"--only", "cpu"}, {"--parts", "all"}, {"--measured", "0s"}, {"more"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}
