package main

import (
	"go/parser"
	"go/token"
	"os"
	"regexp"
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
	swaps := slices.Concat(periods(), bounds(), oneHost())
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
		if lines := changed(strings.Split(string(before), "\n"), strings.Split(text, "\n")); lines > 4 {
			t.Errorf("%s: %d lines differ", file, lines)
		}
	}
	for _, s := range append(periods(), bounds()...) {
		if !strings.Contains(s.old, "time.") && !strings.Contains(s.old, "ClientRate") && s.file != "taints/apiserver/watch.go" {
			t.Errorf("%s: %q is no period", s.file, s.old)
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
	if _, err := swapped(module, []swap{{"agent/reload.go", "rereadEvery = 11 * time.Second", ""}}); err == nil {
		t.Error("no error")
	}
}

// What this program calls the default pace is the default pace.
func TestPeriodsAreTheDefaults(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"agent/config/defaults.go": `Heartbeat:\s+seconds\(300\)`,
		"agent/config/network.go":  `DefaultSampling\(5\*time\.Second`,
		"agent/fleet/fleet.go":     `refreshEvery\s+= 10 \* time\.Minute`,
	} {
		text, err := os.ReadFile(module + "/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(want).Match(text) {
			t.Errorf("%s has no %s", file, want)
		}
	}
	if heartbeatPeriod != 300 || networkPeriod != 5 || refreshPeriod != 600 {
		t.Error("the periods of this program are others")
	}
}
