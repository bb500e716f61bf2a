package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/taintlet/taintlet/test/process"
)

// Exit codes of a program that measures.
const (
	ExitOK          = 0
	ExitFailed      = 1 // or a demand does not hold
	ExitUsage       = 2
	ExitInterrupted = 130
)

// Main runs a program that measures until a signal comes, and returns its exit code. err is
// that of its command line. run reports whether all holds that has to; module is the folder
// of this module.
func Main(program string, err error, run func(ctx context.Context, module string) (holds bool, err error)) int {
	if errors.Is(err, pflag.ErrHelp) {
		return ExitOK
	}
	var module string
	if err == nil {
		module, err = Module()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		return ExitUsage
	}
	ctx, stop := process.Interruptible()
	defer stop()
	holds, err := run(ctx, module)
	return exitCode(ctx, program, holds, err)
}

// exitCode returns the exit code of a program after its measurement, and says on
// standard error what went wrong. holds: all holds that has to. The context ends
// with a signal.
func exitCode(ctx context.Context, program string, holds bool, err error) int {
	switch {
	case err == nil && holds:
		return ExitOK
	case err == nil:
		return ExitFailed
	case ctx.Err() != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		return ExitInterrupted
	}
	fmt.Fprintf(os.Stderr, "%s: FAILED: %v\n", program, err)
	return ExitFailed
}

// Say tells whoever waits what is being done, with the time. It is no part of the
// result.
func Say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
