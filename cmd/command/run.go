// Package command is what the command lines of taintlet and kubectl-taintlet share:
// exit codes, errors, flags, and how they find a cluster.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/taintlet/taintlet/cmd/terminal"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitNotWell = 3
)

// ErrNotWell ends a verb that has already said what is not well.
var ErrNotWell = errors.New("not everything is healthy")

// UsageError is a mistake in the arguments or in the configuration.
type UsageError struct{ Err error }

// Usagef returns a UsageError with that text.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Unwrap returns what is wrong.
func (e UsageError) Unwrap() error { return e.Err }

// Error says what is wrong.
func (e UsageError) Error() string { return e.Err.Error() }

// Run runs the verb that the arguments ask for until it ends or a signal comes, and
// returns the exit code: 0, 2 for a UsageError, 3 for ErrNotWell, and 1 for any other
// error.
func Run(program *cobra.Command, args []string, stdout, stderr io.Writer) int {
	stdout, stderr = &terminal.Writer{W: stdout}, &terminal.Writer{W: stderr}
	program.SilenceErrors, program.SilenceUsage = true, true
	program.InitDefaultCompletionCmd(args...)
	if completion, _, err := program.Find([]string{"completion"}); err == nil { // help is no completion
		completion.Args, completion.RunE = cobra.NoArgs, func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	program.Version = Version()
	program.Flags().Bool("version", false, "print the version")
	hasBegun := false // what is wrong before that are the arguments
	program.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		err := checkChoices(c)
		hasBegun = err == nil
		return err
	}
	program.SetArgs(args)
	program.SetOut(stdout)
	program.SetErr(stderr)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	verb, err := program.ExecuteContextC(ctx)
	var usage UsageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, ErrNotWell):
		return exitNotWell
	case !hasBegun, errors.As(err, &usage):
		fmt.Fprintf(stderr, "taintlet: %s\nSee %s.\n", shortened(err), strings.Replace(verb.CommandPath(), program.DisplayName(), program.DisplayName()+" help", 1))
		return exitUsage
	}
	fmt.Fprintf(stderr, "taintlet: %s\n", shortened(err))
	return exitFailure
}

// maxError is the longest error that is printed, in bytes. Parts of an error come
// from files and from others.
const maxError = 8 << 10

// shortened returns the text of an error, cut where it is too long. All lines but the
// first are indented, so that no part of an error looks like a message of its own.
func shortened(err error) string {
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n\n", "\n")
	return strings.ReplaceAll(terminal.Cut(text, maxError), "\n", "\n  ")
}

// version is set by the linker (-X and the path of this package) where the build
// sees no repository: in the image.
var version string

// Version is the version of this build; "(devel)" where it is not known.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// UserAgent is how this program names itself to an API server, in its audit log.
func UserAgent() string {
	return fmt.Sprintf("taintlet/%s (%s/%s)", Version(), runtime.GOOS, runtime.GOARCH)
}
