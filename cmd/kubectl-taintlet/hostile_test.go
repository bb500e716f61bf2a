package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/test/fixtures"
)

// What others wrote into objects and errors neither commands the terminal of whoever
// runs a verb, nor makes a line of its own, nor fills the screen.
func TestHostileObjectsInEveryVerb(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	calls := map[string][]string{
		"status":    {"status", "status -o=wide", "status -o=json", "status -o=yaml", "status node-1"},
		"check":     {"check", "check --pre", "check -o=json"},
		"evictions": {"evictions", "evictions node-1"},
		"config":    nil, // asks nobody
		"replay":    nil, // asks nobody
	}
	for _, verb := range newProgram().Commands() {
		lines, known := calls[verb.Name()]
		if !known {
			t.Errorf("verb %q: no call of it is tried", verb.Name())
		}
		for _, fails := range []bool{false, true} {
			for _, line := range lines {
				kubeconfig := fixtures.HostileServer(t, fails, command.UserAgent())
				var stdout, stderr bytes.Buffer
				run(append([]string{"kubectl-taintlet"}, append(strings.Fields(line), "--kubeconfig="+kubeconfig)...), &stdout, &stderr)
				fixtures.IsPlain(t, line, stdout.String()+stderr.String())
			}
		}
	}
}
