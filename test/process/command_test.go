package process

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	command := CommandContext(t.Context(), "sh", "-c", "echo said; exit 7")
	command.Stdout = &out
	var exit *exec.ExitError
	if err := Run(command); !errors.As(err, &exit) || exit.ExitCode() != 7 || out.String() != "said\n" {
		t.Errorf("Run: %v, output %q", err, &out)
	}
}

func TestACommandIsInterruptedWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	output := &Lines{}
	command := CommandContext(ctx, "sh", "-c", "trap 'echo interrupted; exit 3' INT; echo ready; while :; do sleep 0.01; done")
	command.Stdout = output
	p, err := Start("script", command, "")
	if err != nil {
		t.Fatal(err)
	}
	waitLine(t, p, output, "ready")
	cancel()
	if err := p.Wait(); err == nil || p.ExitCode() != 3 || !strings.Contains(output.String(), "interrupted") {
		t.Errorf("exit code %d (%v), output %q; want that it was interrupted", p.ExitCode(), err, output)
	}
	if err := Run(CommandContext(ctx, "true")); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}
