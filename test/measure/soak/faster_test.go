package soak

import (
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

const module = "../../.."

// The agent that is watched is the shipped one but for numbers: each text that is
// swapped is there, and what takes its place differs in a period alone, or lets agents of one
// host be peers.
func TestFasterSourcesAreThoseOfTheAgent(t *testing.T) {
	t.Parallel()
	swaps := append(slices.Concat(periods(), bounds(), oneHost()), manyAnswers())
	files, err := swapped(module, swaps)
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range files {
		if _, err := parser.ParseFile(token.NewFileSet(), file, text, 0); err != nil {
			t.Error(err)
		}
		before, err := os.ReadFile(module + "/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if lines := changed(strings.Split(string(before), "\n"), strings.Split(text, "\n")); lines > 5 {
			t.Errorf("%s: %d lines differ", file, lines)
		}
	}
	for _, s := range append(periods(), bounds()...) {
		if !strings.Contains(s.old, "time.") && !strings.Contains(s.old, "range:") && !strings.Contains(s.old, "ClientRate") && !strings.Contains(s.old, "options.Watch") {
			t.Errorf("%q is no period", s.old)
		}
	}
	for name, leak := range leaks() {
		if _, err := swapped(module, append(slices.Clone(swaps), leak)); err != nil {
			t.Errorf("leak of %s: %v", name, err)
		}
	}
}

func changed(before, after []string) int {
	if len(before) != len(after) {
		return len(before)
	}
	count := 0
	for i := range before {
		if before[i] != after[i] {
			count++
		}
	}
	return count
}

// A constant that is not there any more is an error, or the agent would not be
// faster without anybody's notice.
func TestAConstantThatIsGoneIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := swapped(module, []swap{{"rereadEvery = 11 * time.Second", ""}}); err == nil {
		t.Error("no error")
	}
	if _, err := swapped(module, []swap{{"package agent", "package other"}}); err == nil {
		t.Error("no error for a text of several files")
	}
}

// What this program calls the default pace is the default pace.
func TestPeriodsAreTheDefaults(t *testing.T) {
	t.Parallel()
	for _, want := range []string{"Heartbeat: seconds(300)", "DefaultSampling(5*time.Second", "refreshEvery = 10 * time.Minute"} {
		if _, err := swapped(module, []swap{{old: want}}); err != nil {
			t.Error(err)
		}
	}
	if heartbeatPeriod != 300 || networkPeriod != 5 || refreshPeriod != 600 {
		t.Error("the periods of this program are others")
	}
}
