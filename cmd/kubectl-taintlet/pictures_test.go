package main

import (
	"os"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/test/fixtures"
)

// The picture of the documentation shows what status draws. -update draws it.
func TestTerminalPictures(t *testing.T) {
	fixtures.CheckPicture(t, "../../docs/images/status.svg", "kubectl taintlet status --watch", statusScreen(t), *update)
}

// statusScreen is what status writes to a terminal of 180 columns: the lines that
// package status tests, of Nodes as real agents left them.
func statusScreen(t *testing.T) string {
	t.Helper()
	lines, err := os.ReadFile("status/testdata/screen-180.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(lines), "\n")
}
