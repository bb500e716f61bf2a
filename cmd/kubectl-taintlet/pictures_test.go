package main

import (
	"os"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/test/fixtures"
)

// The picture of the documentation shows what status writes to a terminal of 180 columns: the lines
// that package status tests, of Nodes as real agents left them. -update draws it.
func TestTerminalPictures(t *testing.T) {
	text, err := os.ReadFile("status/testdata/screen-180.txt")
	if err != nil {
		t.Fatal(err)
	}
	fixtures.CheckPicture(t, "../../docs/images/status.svg", "kubectl taintlet status --watch", strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), *update)
}
