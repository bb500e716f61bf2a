// Package golden compares texts with files that a reviewer reads.
package golden

import (
	"os"
	"testing"
)

// Compare compares a text with a file. update writes the file first.
func Compare(t testing.TB, update bool, file, got string) {
	t.Helper()
	if update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file) //nolint:gosec // named by a test
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s has\n%s\nbut it is\n%s\n(make scenarios writes it, some with ALL=1)", file, want, got)
	}
}
