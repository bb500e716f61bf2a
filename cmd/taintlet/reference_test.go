package main

import (
	"flag"
	"testing"

	"github.com/taintlet/taintlet/test/fixtures"
)

var update = flag.Bool("update", false, "write docs/command-line.md, testdata and the pictures of terminals")

// docs/command-line.md has the help of every verb, word for word, as the binary
// prints it, whatever the environment.
func TestCommandLineIsDocumented(t *testing.T) {
	fixtures.CheckReference(t, "../../docs/command-line.md", newProgram(), program.Path(t), *update)
}
