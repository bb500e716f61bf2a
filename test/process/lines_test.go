package process

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestLinesAreWhole(t *testing.T) {
	var l Lines
	for _, text := range []string{"one\ntw", "o", "\n\nthr"} {
		if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("Write(%q) = %d, %v", text, n, err)
		}
	}
	if got, _ := l.present(); !slices.Equal(got, []string{"one", "two", ""}) {
		t.Errorf("lines %q", got)
	}
	if got := l.String(); got != "one\ntwo\n\nthr" {
		t.Errorf("text %q", got)
	}
}

func TestALineIsWaitedFor(t *testing.T) {
	p, output := start(t, "read line; echo $line; echo last; exit 7", "")
	says := func(text string) func([]string) bool {
		return func(lines []string) bool { return slices.Contains(lines, text) }
	}
	// The last lines count although the process has ended.
	if err := p.WaitLines(soon(t), output, says("last")); err != nil {
		t.Error(err)
	}
	if err := p.WaitLines(soon(t), output, says("more")); err == nil || !strings.Contains(err.Error(), "script ended without saying it") {
		t.Errorf("a line that never came: %v", err)
	}
	silent, none := start(t, "exec sleep infinity", "")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := silent.WaitLines(ended, none, says("anything")); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}
