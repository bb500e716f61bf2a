package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is tested is what is shipped.
func TestTheAgentIsCompiledAlikeEverywhere(t *testing.T) {
	for _, file := range []string{"Makefile", "Dockerfile"} {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.Join(Lean(), " "); !strings.Contains(string(text), " "+want) {
			t.Errorf("%s does not have %s", file, want)
		}
	}
}
