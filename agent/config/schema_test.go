package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/config"
)

// What names a condition knows that one only. In the schema a fifth one takes its place
// beside the others.
func TestConditionsAreNamedInTheSchemaOnly(t *testing.T) {
	name := regexp.MustCompile(`\b(MemoryPressure|DiskPressure|PIDPressure|NetworkUnavailable)\b`)
	for _, root := range []string{"../../agent", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || path == "../../agent/config/schema.go" {
				return err
			}
			text, err := os.ReadFile(path)
			for i, line := range strings.Split(string(text), "\n") {
				code, _, _ := strings.Cut(line, "//")
				if name.MatchString(code) {
					t.Errorf("%s:%d names a condition: %s", path, i+1, strings.TrimSpace(code))
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The schema says of each condition whether its probe knows the level Critical.
func TestSchemaKnowsWhatBecomesCritical(t *testing.T) {
	for _, definition := range config.HostSchema() {
		knows, files := false, 0
		err := filepath.WalkDir("../../probes/"+definition.Field, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			files++
			knows = knows || strings.Contains(string(text), "probes.Critical")
			return err
		})
		if err != nil || files == 0 {
			t.Fatal(definition.Field, files, err)
		}
		if knows != definition.BecomesCritical {
			t.Errorf("%s: BecomesCritical is %v, and its probe knows Critical: %v", definition.Name, definition.BecomesCritical, knows)
		}
	}
}
