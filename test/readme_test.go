package test

import (
	"os"
	"strings"
	"testing"
)

// The map has every folder beside it, and no row of a folder that is gone.
func TestREADMEIsAMapOfTheFolders(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if name, found := strings.CutPrefix(line, "| `"); found {
			name, _, _ = strings.Cut(name, "`")
			rows[name] = true
		}
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() && !rows[entry.Name()] {
			t.Errorf("no row begins with folder %s", entry.Name())
		}
	}
	for name := range rows {
		if strings.Contains(name, " ") {
			continue // a command
		}
		if _, err := os.Stat(name); err != nil {
			t.Errorf("a row begins with what is not there: %v", err)
		}
	}
}
