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
		"cleanup": {"cleanup all --dry-run", "cleanup stale --dry-run", "cleanup node node-1 --dry-run", "cleanup node node-1"},
		"once":    nil, // asks nobody
	}, func(args []string, stdout, stderr io.Writer) { run(args, stdout, stderr) })
}
