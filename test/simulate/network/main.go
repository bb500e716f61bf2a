// Command netsim shows whom the verdict of the network probe accuses: it lets
// 1,000 simulated nodes run the agent's own Evaluator and Debounce through faults,
// and prints how many of the broken and of the healthy nodes are accused.
//
//	go run ./test/simulate/network
//	go run ./test/simulate/network --short
package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
)

// Exit codes.
const (
	exitOK    = 0
	exitUsage = 2
)

func main() {
	flags := pflag.NewFlagSet("netsim", pflag.ContinueOnError)
	short := flags.Bool("short", false, "fewer and smaller fleets, in seconds")
	seed := flags.Uint64("seed", 1, "of everything that is random")
	only := flags.String("only", "", "scenarios whose name contains this")
	why := flags.Bool("why", false, "tell why healthy nodes were accused")
	if err := flags.Parse(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "netsim: %v\n", err)
		os.Exit(exitUsage)
	}
	report(os.Stdout, scenarios(*short), *seed, *only, *why)
	os.Exit(exitOK)
}
