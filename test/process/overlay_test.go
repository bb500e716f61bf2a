package process

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The overlay names a copy of the file with the text replaced. A text that is not there once
// is an error.
func TestOverlay(t *testing.T) {
	module, folder := t.TempDir(), t.TempDir()
	source := filepath.Join(module, "a.go")
	if err := os.WriteFile(source, []byte("one two two"), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := Overlay(module, folder, Swap{File: "a.go", Old: "one", New: "ten"})
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Replace map[string]string }
	text, err := os.ReadFile(overlay) //nolint:gosec // of this test
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := os.ReadFile(list.Replace[source]); err != nil || string(changed) != "ten two two" {
		t.Errorf("%q %v", changed, err)
	}
	if overlay, err = Overlay(module, folder, Swap{File: "b.go", New: "new"}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(overlay); err != nil || !strings.Contains(string(text), filepath.Join(module, "b.go")) { //nolint:gosec // of this test
		t.Errorf("a new file: %s %v", text, err)
	}
	for _, swaps := range [][]Swap{{{File: "a.go", New: "new"}}, {{File: "a.go", Old: "two"}}, {{File: "a.go", Old: "three"}}, {{File: "a.go", Old: "one"}, {File: "a.go", Old: "one"}}} {
		if _, err := Overlay(module, folder, swaps...); err == nil || !strings.Contains(err.Error(), "a.go") {
			t.Errorf("%v: %v", swaps, err)
		}
	}
}
