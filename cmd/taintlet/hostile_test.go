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
		"cleanup": {"cleanup all --dry-run", "cleanup stale --dry-run", "cleanup node node-1 --dry-run", "cleanup node node-1"},
		"once":    nil, // asks nobody
		"watch":   nil, // asks nobody
		"record":  nil, // asks nobody
		"status":  nil, // has moved
		"check":   nil, // has moved
		"config":  nil, // has moved
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
				run(append(strings.Fields(line), "--kubeconfig="+kubeconfig), &stdout, &stderr)
				fixtures.IsPlain(t, line, stdout.String()+stderr.String())
			}
		}
	}
}
