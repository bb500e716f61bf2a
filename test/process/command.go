package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// killAfter is how long an interrupted command may take to end.
const killAfter = 10 * time.Second

// Command is a command that lives until it is stopped.
func Command(program string, args ...string) *exec.Cmd {
	return exec.Command(program, args...) //nolint:noctx // see above
}

// CommandContext is a command that is interrupted, as by Ctrl-C, when the context
// ends, and killed if it does not end soon after that.
func CommandContext(ctx context.Context, program string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, program, args...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = killAfter
	return command
}

// Run runs a command to its end, as command.Run does, and not longer than this
// process lives.
func Run(command *exec.Cmd) error {
	p, err := Start(command.Path, command, "")
	if err != nil {
		return err
	}
	return p.Wait()
}

// Output runs a command to its end and returns what it prints. The error shows all
// that it said. It is interrupted when the context ends.
func Output(ctx context.Context, folder string, env []string, program string, args ...string) (string, error) {
	var stdout, stderr strings.Builder
	command := CommandContext(ctx, program, args...)
	command.Dir, command.Env = folder, append(os.Environ(), env...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := Run(command); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w\n%s%s", program, strings.Join(args, " "), errors.Join(err, ctx.Err()), &stdout, &stderr)
	}
	return stdout.String(), nil
}
