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
	t.Setenv("NODE_NAME", "somewhere")
	t.Setenv("POD_NAMESPACE", "elsewhere")
	var verbs []string
	for _, verb := range newProgram().Commands() {
		if verb.Hidden {
			continue
		}
		verbs = append(verbs, verb.Name())
		if verb.Short == "" || verb.Example == "" {
			t.Errorf("%s has no summary or no example", verb.Name())
		}
	}
	fixtures.CheckReference(t, "../../docs/command-line.md", "kubectl taintlet", verbs, func(verb string) string {
		args := []string{"--help"}
		if verb != "" {
			args = []string{verb, "--help"}
		}
		code, help, stderr := called(t, args...)
		if code != 0 || stderr != "" {
			t.Errorf("help of %s: exit code %d, %s", verb, code, stderr)
		}
		return help
	}, *update)
}
