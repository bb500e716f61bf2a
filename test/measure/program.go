package measure

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Exit codes of a program that measures.
const (
	ExitOK          = 0
	ExitFailed      = 1 // or a demand does not hold
	ExitUsage       = 2
	ExitInterrupted = 130
)

// ExitCode returns the exit code of a program after its measurement, and says on
// standard error what went wrong. holds: all holds that has to. The context ends
// with a signal.
func ExitCode(ctx context.Context, program string, holds bool, err error) int {
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
