// Command simulate shows what a configuration of taintlet would do: it drives
// the decider of the agent through days of made-up input within
// seconds, beside the kubelet's rule on the same input.
//
//	go run ./test/simulate --synthetic adversary
//	go run ./test/simulate --synthetic flap --config taintlet.yaml
//
// The exit status is 0, 1 when an output could not be written, 2 when the
// flags or the configuration are wrong.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/taintlet/taintlet/agent/config"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2 // flags or configuration
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	if errors.Is(err, pflag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "simulate: %v\nSee --help.\n", err)
		return exitUsage
	}
	cfg, err := config.HostSchema().Load(o.config)
	if err != nil {
		fmt.Fprintf(stderr, "simulate: %v\n", err)
		return exitUsage
	}
	r, write := newReport(cfg, o.open(), o.followUp), (*report).writeTable
	if o.output == "json" {
		write = (*report).writeJSON
	}
	if err := write(r, stdout); err != nil {
		fmt.Fprintf(stderr, "simulate: %v\n", err)
		return exitFailure
	}
	return exitOK
}
