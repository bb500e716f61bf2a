package main

import (
	"io"
	"testing"

	"github.com/taintlet/taintlet/test/fixtures"
)

// What others wrote into objects and errors neither commands the terminal of whoever
// runs a verb, nor makes a line of its own, nor fills the screen.
func TestHostileObjectsInEveryVerb(t *testing.T) {
	fixtures.CheckHostile(t, newProgram().Commands(), map[string][]string{
		"status":    {"status", "status -o=wide", "status -o=json", "status -o=yaml", "status node-1", "status --no-headers", "status -o=name", "status -o=jsonpath={.nodes}"},
		"check":     {"check", "check --pre", "check -o=json", "check -o=yaml", "check -o=jsonpath={.lines[*].text}"},
		"evictions": {"evictions", "evictions node-1"},
		"config":    {"config", "config node-1"},
		"version":   {"version"},
		"cleanup":   {"cleanup all --dry-run", "cleanup stale --dry-run", "cleanup node node-1"},
	}, func(args []string, stdout, stderr io.Writer) {
		run(append([]string{"kubectl-taintlet"}, args...), stdout, stderr)
	})
}
