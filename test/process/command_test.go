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

func TestOutput(t *testing.T) {
	folder := t.TempDir()
	out, err := Output(t.Context(), folder, []string{"WORD=said"}, "sh", "-c", "echo $WORD in $(pwd); echo aside >&2")
	if err != nil || out != "said in "+folder+"\n" {
		t.Errorf("%q, %v", out, err)
	}
	_, err = Output(t.Context(), folder, []string{"OUT=before", "ERR=why"}, "sh", "-c", "echo $OUT; echo $ERR >&2; exit 3")
	for _, want := range []string{"exit status 3", "before", "why"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}
