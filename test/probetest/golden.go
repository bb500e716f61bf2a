package probetest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/probes"
)

// Golden compares what a probe says with testdata/messages.golden, where a reviewer
// reads it all in one place, and writes that file where update is set. That it has
// each reason is for TestReasonsHaveAMessage of package probes.
func Golden(t *testing.T, update bool, observations ...probes.Observation) {
	t.Helper()
	const file = "testdata/messages.golden"
	var all strings.Builder
	for _, o := range observations {
		level := o.Level.String()
		if o.Hysteresis {
			level = "near"
		}
		fmt.Fprintf(&all, "%s %s: %s", level, o.Reason, o.Message)
		if o.Clears != "" {
			all.WriteString(" | clears " + o.Clears)
		}
		all.WriteString("\n")
	}
	if update {
		if err := os.WriteFile(file, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := all.String(); got != string(want) {
		t.Errorf("%s differs; go test -run TestMessages -update writes it:\n%s", file, got)
	}
}
