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
	"github.com/spf13/pflag"

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
	if _, rest, err := program.Find([]string{"version"}); err != nil || len(rest) > 0 {
		program.AddCommand(versionVerb(program.DisplayName()))
	}
	program.SilenceErrors, program.SilenceUsage = true, true
	program.SetHelpCommand(helpVerb(program))
	program.InitDefaultCompletionCmd(args...)
	if completion, _, err := program.Find([]string{"completion"}); err == nil {
		completion.Args, completion.RunE = UnknownVerb, ShowHelp
	}
	program.Version = Version()
	program.Flags().Bool("version", false, "print the version")
	program.PersistentPreRunE = checkChoices
	program.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return UsageError{unknownFlag(err, c.Flags())} })
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
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "taintlet: %s\nSee %s.\n", shortened(err), strings.Replace(verb.CommandPath(), program.DisplayName(), program.DisplayName()+" help", 1))
		return exitUsage
	}
	fmt.Fprintf(stderr, "taintlet: %s\n", shortened(err))
	return exitFailure
}

// helpVerb shows the help of a verb, or of the program.
func helpVerb(program *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [VERB]", Short: "show the verbs, or the flags and examples of one",
		Example: "  # What flags has a verb?\n  " + program.DisplayName() + " help version",
		RunE: func(_ *cobra.Command, args []string) error {
			verb, rest, err := program.Find(args)
			if err == nil && len(rest) > 0 {
				err = UnknownVerb(verb, rest)
			}
			if err != nil {
				return err
			}
			return verb.Help()
		},
	}
}

// ShowHelp runs a program or a verb that does nothing without another verb.
func ShowHelp(c *cobra.Command, _ []string) error { return c.Help() }

// unknownFlag adds to pflag's error which flags there are.
func unknownFlag(err error, flags *pflag.FlagSet) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var allowed []string
	flags.VisitAll(func(f *pflag.Flag) { allowed = append(allowed, "--"+f.Name) })
	return fmt.Errorf("%w; the flags are %s", err, strings.Join(allowed, ", "))
}

// UnknownVerb refuses what follows the name of a program and is no verb.
func UnknownVerb(program *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var verbs []string
	for _, verb := range program.Commands() {
		verbs = append(verbs, verb.Name())
	}
	meant := ""
	program.SuggestionsMinimumDistance = 2 // letters that differ
	if near := program.SuggestionsFor(args[0]); len(near) > 0 {
		last := len(near) - 1
		meant = "; did you mean " + strings.TrimPrefix(strings.Join(near[:last], ", ")+" or "+near[last], " or ") + "?"
	}
	return Usagef("unknown verb %q; the verbs are %s%s", args[0], strings.Join(verbs, ", "), meant)
}

// NoArguments refuses arguments that are no flags.
func NoArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("unexpected argument %q", args[0])
	}
	return nil
}

// maxError is the longest error that is printed, in bytes. Parts of an error come
// from files and from others.
const maxError = 8 << 10

// shortened returns the text of an error, cut where it is too long. All lines but the
// first are indented, so that no part of an error looks like a message of its own.
func shortened(err error) string {
	return strings.ReplaceAll(terminal.Cut(err.Error(), maxError), "\n", "\n  ")
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

// versionVerb prints the version of a program.
func versionVerb(program string) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "print the version", Args: NoArguments,
		Example: "  # Which version is this?\n  " + program + " version",
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), "taintlet", Version())
			return err
		},
	}
}
