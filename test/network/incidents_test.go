package network

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/bed/fleet"
)

// longEnv asks for all incidents, which take an hour, and not only for those
// that are quick. It is the file into which their table is written.
const longEnv = "TAINTLET_NETWORK_TABLE"

// incident is one way in which networks break, and whom it makes tainted.
type incident struct {
	name string
	fault
	// tainted has the numbers of the hosts that must be tainted, all of them
	// within that time. Nobody else ever is.
	tainted []int
	within  time.Duration
	// lasts is how long it is watched that nobody else is tainted.
	lasts time.Duration
	// runs is how long the agents have run when it happens, at least.
	runs time.Duration
	// may has the numbers of hosts that may be tainted but need not.
	may []int
	// long: only in the long form.
	long bool
}

// patience is how much longer a taint is waited for that is late: a failure says
// how late.
const patience = 90 * time.Second

// result is a row of the table.
type result struct{ name, tainted, after, clears string }

// clearsWithin is how long after the repair nobody may be tainted any more: five
// samples of 5 s, the 10 s of fleet.Quick, and what a busy machine needs.
const clearsWithin = 75 * time.Second

func TestIncidents(t *testing.T) {
	s := require(t)
	s.replay(t, hosts, s.incidents())
}

// TestIncidentsOfThree has three hosts only: the fewest of which one can be told
// from the others.
func TestIncidentsOfThree(t *testing.T) {
	onlyLong(t) // all of its incidents are
	s := require(t)
	s.replay(t, few, s.incidentsOfThree())
}

// replay lets incidents happen one after another to the same agents.
func (s scene) replay(t *testing.T, count int, incidents []incident) {
	t.Helper()
	agents, started := s.Start(t, count, fleet.Quick), time.Now()
	var results []result
	for _, i := range incidents {
		if i.long && os.Getenv(longEnv) == "" {
			continue
		}
		t.Run(i.name, func(t *testing.T) {
			s.WaitKnown(t, count)
			s.Records.Wait(time.Until(started.Add(i.runs)), func(map[string]fleet.State) bool { return false })
			fleet.WaitSamples(t, agents, 2) // each class is known then
			results = append(results, s.happens(t, agents, i))
		})
	}
	if t.Failed() {
		for _, a := range agents {
			t.Logf("log of %s:\n%s", a.Name, fleet.Tail(a.Log.String(), 12))
		}
	}
	writeTable(t, count, results)
}

// happens lets one incident happen and checks who is tainted, and when.
func (s scene) happens(t *testing.T, agents []*fleet.Agent, i incident) result {
	t.Helper()
	began := time.Now()
	if err := i.begin(agents); err != nil {
		t.Fatal(err)
	}
	mended := false
	mend := func() {
		if mended {
			return
		}
		mended = true
		if err := i.end(agents); err != nil {
			t.Error(err)
		}
	}
	defer mend()

	wanted := names(i.tainted)
	r := result{name: i.name, tainted: "nobody", after: "–", clears: "–"}
	if len(wanted) > 0 {
		r.tainted = strings.Join(wanted, ", ")
		all := s.Records.Wait(i.within+patience, func(states map[string]fleet.State) bool { return containsAll(fleet.TaintedIn(states), wanted) })
		r.after = seconds(time.Since(began))
		if !all || time.Since(began) > i.within {
			t.Errorf("want tainted within %s: %s; after %s: %s", i.within, wanted, r.after, s.Records.Tainted())
		}
	}
	s.Records.Wait(time.Until(began.Add(i.lasts)), func(states map[string]fleet.State) bool {
		return !containsAll(names(append(i.tainted, i.may...)), fleet.TaintedIn(states))
	})
	mend()
	over := time.Now()
	if !s.Records.Wait(clearsWithin, func(states map[string]fleet.State) bool { return len(fleet.TaintedIn(states)) == 0 }) {
		t.Errorf("still tainted %s after the end: %s", clearsWithin, s.Records.Tainted())
	}
	if len(wanted) > 0 {
		r.clears = seconds(time.Since(over))
	}
	s.CheckChanges(t, began, names(append(i.tainted, i.may...)))
	t.Logf("tainted: %s; after %s; clears after %s\n%s", r.tainted, r.after, r.clears, fleet.Show(s.Records.Since(began)))
	return r
}

func names(numbers []int) []string {
	var names []string
	for _, number := range numbers {
		names = append(names, fmt.Sprintf("host-%d", number))
	}
	return names
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }

// writeTable adds the results to the table, if one was asked for.
func writeTable(t *testing.T, count int, results []result) {
	t.Helper()
	path := os.Getenv(longEnv)
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // a table for people
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // the write tells
	for _, r := range results {
		if _, err := fmt.Fprintf(file, "| %d | %s | %s | %s | %s |\n", count, r.name, r.tainted, r.after, r.clears); err != nil {
			t.Fatal(err)
		}
	}
}

// stopped freezes the agents of some hosts for 3 s of every 10 s, as a host does
// that is out of CPU or memory.
func stopped(numbers ...int) fault {
	send := func(signal syscall.Signal) func([]*fleet.Agent) error {
		return onHosts(numbers, func(a *fleet.Agent) error { return syscall.Kill(a.Process.PID(), signal) })
	}
	return repeated(10*time.Second, send(syscall.SIGSTOP), send(syscall.SIGCONT), 3*time.Second)
}
