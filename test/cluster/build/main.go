// Command build builds the programs of the control plane that tests run, or
// those that are named, and prints the folder they are in:
//
//	go run ./test/cluster/build [program ...]
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/taintlet/taintlet/test/cluster"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := cluster.Build(ctx, os.Stderr, os.Args[1:]...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		return 1
	}
	fmt.Println(dir)
	return 0
}
