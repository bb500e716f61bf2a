// Command taintlet watches the health of the host it runs on and keeps the
// right taints on its own Kubernetes Node.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
)

func main() {
	os.Exit(run(os.Args, os.Stdout, os.Stderr))
}

// run does what the arguments ask for and returns the exit code. The first of
// them is the name by which the program was called.
func run(args []string, stdout, stderr io.Writer) int {
	stdout, stderr = &plainWriter{w: stdout}, &plainWriter{w: stderr}
	c := call{program: programName(args[0]), stdout: stdout, stderr: stderr}
	v, rest, err := choose(c.program, args[1:])
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		err = v.run(ctx, c, rest)
	}
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errNotWell):
		return exitNotWell
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "taintlet: %s\nSee %s.\n", shortened(err), strings.TrimSpace(c.program+" help "+v.name))
		return exitUsage
	}
	fmt.Fprintf(stderr, "taintlet: %s\n", shortened(err))
	return exitFailure
}

// kubectlPlugin is how the program is named where kubectl finds it as a plugin.
const kubectlPlugin = "kubectl-taintlet"

// programName is what people type to call the program.
func programName(path string) string {
	if filepath.Base(path) == kubectlPlugin {
		return "kubectl taintlet"
	}
	return "taintlet"
}

// choose returns the verb that the arguments ask for, and its own arguments. As a
// plugin of kubectl, no argument asks for help and not for an agent.
func choose(program string, args []string) (verb, []string, error) {
	name := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	} else if len(args) == 0 && program != "taintlet" {
		name = "help"
	}
	v, err := find(name)
	return v, args, err
}

// run parses the verb's flags and runs it.
func (v verb) run(ctx context.Context, c call, args []string) error {
	flags, do := v.flags()
	err := flags.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		_, err := io.WriteString(c.stdout, v.help(c.program))
		return err
	}
	if err != nil {
		return usageError{unknownFlag(err, flags)}
	}
	c.args = flags.Args()
	if v.arguments == "" && len(c.args) > 0 {
		return usageError{v.unexpected(c)}
	}
	if err := checkChoices(flags); err != nil {
		return usageError{err}
	}
	return do(ctx, c)
}

// unexpected says that the verb takes no arguments.
func (v verb) unexpected(c call) error {
	if v.name == "" && slices.Contains(names(verbs()), c.args[0]) {
		return fmt.Errorf("the verb comes before the flags: %s %s", c.program, c.args[0])
	}
	return fmt.Errorf("unexpected argument %q", c.args[0])
}

// unknownFlag adds to pflag's error which flags there are.
func unknownFlag(err error, flags *pflag.FlagSet) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var allowed []string
	flags.VisitAll(func(f *pflag.Flag) { allowed = append(allowed, "--"+f.Name) })
	if len(allowed) == 0 {
		return fmt.Errorf("%w; there are no flags here", err)
	}
	return fmt.Errorf("%w; the flags are %s", err, strings.Join(allowed, ", "))
}
