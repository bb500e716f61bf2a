// Command demo tells the whole story of taintlet on this host, with a real
// Kubernetes control plane: memory gets scarce, the agent taints the Node, the
// taint stays although a controller wants it away, memory comes back and the
// taint goes.
//
//	go run ./test/demo          # or: make demo
//	KEEP=1 go run ./test/demo   # leaves it running until Ctrl-C
//
// It needs Go and git, no root and no cluster. The exit status is 0 when all of
// it happened, 1 when a part is missing, 130 after Ctrl-C.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/taintlet/taintlet/test/process"
)

// Exit codes.
const (
	exitOK          = 0
	exitMissing     = 1
	exitInterrupted = 130
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == takeMemory {
		target, err := strconv.ParseUint(os.Args[2], 10, 32)
		if err == nil {
			err = holdDown(target * mebibyte)
		}
		fmt.Fprintf(os.Stderr, "%s: %v\n", takeMemory, err)
		os.Exit(exitMissing)
	}
	os.Exit(run())
}

func run() int {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "demo takes no arguments; KEEP=1 in the environment leaves it running")
		return exitMissing
	}
	ctx, stop := process.Interruptible()
	defer stop()
	keep := os.Getenv("KEEP") != "" && os.Getenv("KEEP") != "0"

	switch err := tell(ctx, &console{os.Stdout, time.Now()}, keep); {
	case err == nil:
		return exitOK
	case ctx.Err() != nil:
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		return exitInterrupted
	default:
		fmt.Fprintf(os.Stderr, "\ndemo: FAILED: %v\n", err)
		return exitMissing
	}
}
