package decide_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var courseFile = flag.String("course", "", "a file with the course of a fault test on a real control plane (test/faults), which is played before the judge and made shorter")

// courseOf reads a course: lines of a scenario. The events at its beginning, at 0s, are a
// prefix that is not made shorter.
func courseOf(t *testing.T, text string) (prefix, events []string) {
	t.Helper()
	now := time.Duration(0)
	for line := range strings.Lines(text) {
		at, event, found := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case !found || at == "#":
		case at == "0s" && len(events) == 0:
			prefix = append(prefix, event)
		default:
			if next := duration(at); next > now {
				events = append(events, "+"+(next-now).String())
				now = next
			}
			events = append(events, event)
		}
	}
	if len(events) == 0 {
		t.Fatal("the course has no events")
	}
	return prefix, events
}

// prefixed returns a quiet world after the events of a prefix.
func prefixed(t *testing.T, prefix []string) *world {
	t.Helper()
	w := quietWorld(nil)
	for _, event := range prefix {
		if err := w.event(strings.Fields(event)); err != nil {
			t.Fatalf("%q: %v", event, err)
		}
	}
	return w
}

// possible plays a course up to its first failure, and returns the events that were possible:
// what a real API server did, one of a few lines may not have done.
func possible(t *testing.T, prefix, events []string) (done []string) {
	t.Helper()
	w := prefixed(t, prefix)
	for _, event := range events {
		if w.happens(event) {
			done = append(done, event)
		}
		if w.judge.verdict != "" {
			break
		}
	}
	return done
}

// TestCourse plays the course of a fault test before the judge, the decider alone. What the
// judge does not let pass is made shorter and printed as a scenario.
func TestCourse(t *testing.T) {
	if *courseFile == "" {
		t.Skip("no -course")
	}
	text, err := os.ReadFile(*courseFile)
	if err != nil {
		t.Fatal(err)
	}
	prefix, events := courseOf(t, string(text))
	done := possible(t, prefix, events)
	failsSo := func(events []string) string {
		return failsAfter(prefixed(t, prefix), slices.Concat(events, recovery()))
	}
	if failsSo(done) == "" {
		t.Logf("the decider does nothing wrong in %d of %d events, and in the recovery of its host", len(done), len(events))
		return
	}
	shorter := shortest(done, failsSo)
	whole := possible(t, prefix, slices.Concat(shorter, recovery())) // up to the failure
	t.Errorf("the decider is wrong:\n%send of the scenario", scenario("a fault test on a real control plane", failsSo(shorter), slices.Concat(prefix, whole)))
}

// recovery is what follows a course: the host is well, and its Node has to become untainted.
func recovery() []string {
	return []string{"writes land", "watch goes on", "pid ok", "network ok", "+1s", "pid ok", "network ok", "+1m", "pid ok", "network ok", "forever ok"}
}
