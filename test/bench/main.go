// Command bench measures taintlet beside a real kubelet, on this host and the
// same Node: how long after a threshold is crossed the taint of each is there.
//
//	go run ./test/bench                  # 10 runs each of memory, disk, PIDs
//	go run ./test/bench --only pid --runs 3
//	go run ./test/bench --idle 10m       # what both cost while nothing happens
//
// It needs root, containerd, and a host on which not much else happens. The
// README beside it says what is compared and how.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case takeMemory:
			os.Exit(runChild(takeMemory, os.Args[2:], memoryChild))
		case takeTasks:
			os.Exit(runChild(takeTasks, os.Args[2:], tasksChild))
		}
	}
	os.Exit(run())
}

type options struct {
	runs     int
	only     []string
	notified bool
	idle     time.Duration
	agent    string
	config   string
}

func parse(args []string) (*options, error) {
	o := &options{}
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.IntVar(&o.runs, "runs", 10, "how often each is measured")
	flags.StringSliceVar(&o.only, "only", subjectNames(), "what is measured")
	flags.BoolVar(&o.notified, "memcg-notification", false, "let the kernel tell the kubelet that memory crosses its threshold (off in a kubelet by default)")
	flags.DurationVar(&o.idle, "idle", 0, "measure instead what both cost in this time while nothing happens")
	flags.StringVar(&o.agent, "agent", "", "the agent's binary (default: built from here)")
	flags.StringVar(&o.config, "config", "", "the agent's configuration for --idle (default: the built-in one)")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if len(flags.Args()) > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Args()[0])
	}
	if o.runs < 1 {
		return nil, fmt.Errorf("--runs %d: must be at least 1", o.runs)
	}
	for _, name := range o.only {
		if !slices.Contains(subjectNames(), name) {
			return nil, fmt.Errorf("--only %q: must be some of %v", name, subjectNames())
		}
	}
	return o, nil
}

func run() int {
	o, err := parse(os.Args[1:])
	if errors.Is(err, pflag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends it at once; the children end with it

	measure := measureLatency
	if o.idle > 0 {
		measure = measureIdle
	}
	switch err := measure(ctx, o); {
	case err == nil:
		return exitOK
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		return exitInterrupted
	default:
		fmt.Fprintln(os.Stderr, "bench: FAILED:", err)
		return exitFailed
	}
}
