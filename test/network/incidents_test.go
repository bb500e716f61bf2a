package network

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/bed"
)

// longEnv asks for all incidents, which take an hour, and not only for those
// that are quick. It is the file into which their table is written.
const longEnv = "TAINTLET_NETWORK_TABLE"

// quick lets Nodes be cleared after 10 s of good samples, however often that
// happens, so that one incident follows the other. All that decides whether and
// when a Node is tainted is the default.
const quick = `
network: {debounce: {clearAfter: 10s, maxClearAfter: 10s}}
writeBudget: {burst: 100, interval: 1s}
`

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
// samples of 5 s, the 10 s of quick, and what a busy machine needs.
const clearsWithin = 75 * time.Second

func TestIncidents(t *testing.T) {
	s := require(t)
	s.replay(t, hosts, s.incidents())
}

// TestIncidentsOfThree has three hosts only: the fewest of which one can be told
// from the others.
func TestIncidentsOfThree(t *testing.T) {
	s := require(t)
	s.replay(t, few, s.incidentsOfThree())
}

// replay lets incidents happen one after another to the same agents.
func (s *scene) replay(t *testing.T, count int, incidents []incident) {
	t.Helper()
	agents, started := s.start(t, count, quick), time.Now()
	var results []result
	for _, i := range incidents {
		if i.long && os.Getenv(longEnv) == "" {
			continue
		}
		t.Run(i.name, func(t *testing.T) {
			s.waitKnown(t, count)
			s.records.wait(time.Until(started.Add(i.runs)), func(map[string]state) bool { return false })
			waitSamples(t, agents, 2) // each class is known then
			results = append(results, s.happens(t, agents, i))
		})
	}
	if t.Failed() {
		for _, a := range agents {
			t.Logf("log of %s:\n%s", a.Name, tail(a.output.String(), 12))
		}
	}
	writeTable(t, count, results)
}

// happens lets one incident happen and checks who is tainted, and when.
func (s *scene) happens(t *testing.T, agents []*agent, i incident) result {
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
		all := s.records.wait(i.within+patience, func(states map[string]state) bool { return containsAll(taintedIn(states), wanted) })
		r.after = seconds(time.Since(began))
		if !all || time.Since(began) > i.within {
			t.Errorf("want tainted within %s: %s; after %s: %s", i.within, wanted, r.after, s.records.tainted())
		}
	}
	s.records.wait(time.Until(began.Add(i.lasts)), func(states map[string]state) bool {
		return !containsAll(names(append(i.tainted, i.may...)), taintedIn(states))
	})
	mend()
	over := time.Now()
	if !s.records.wait(clearsWithin, func(states map[string]state) bool { return len(taintedIn(states)) == 0 }) {
		t.Errorf("still tainted %s after the end: %s", clearsWithin, s.records.tainted())
	}
	if len(wanted) > 0 {
		r.clears = seconds(time.Since(over))
	}
	s.checkChanges(t, began, names(append(i.tainted, i.may...)))
	t.Logf("tainted: %s; after %s; clears after %s\n%s", r.tainted, r.after, r.clears, show(s.records.since(began)))
	return r
}

// checkChanges checks that nobody else was tainted, and that all that was
// written where nobody should be is the suspicion.
func (s *scene) checkChanges(t *testing.T, began time.Time, may []string) {
	t.Helper()
	for _, c := range s.records.since(began) {
		if (c.tainted || c.status == corev1.ConditionTrue) && !slices.Contains(may, c.node) {
			t.Errorf("tainted or accused: %s", c)
		}
	}
	requests, err := s.cluster.Requests(":" + bed.Account)
	if err != nil {
		t.Fatal(err)
	}
	writes := map[string]int{}
	for _, r := range requests {
		if r.RequestReceivedTimestamp.Before(began) || r.Verb != "patch" && r.Verb != "create" && r.Verb != "update" {
			continue
		}
		node := strings.Join(r.User.Extra[bed.NodeNameExtra], "")
		writes[r.Resource()]++
		if r.Resource() == "nodes" && !slices.Contains(may, node) && strings.Contains(string(r.RequestObject), "network-unavailable") {
			t.Errorf("%s writes a taint: %.300s", node, r.RequestObject)
		}
	}
	t.Logf("writes of all agents: %v", writes)
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
	send := func(signal syscall.Signal) func([]*agent) error {
		return onHosts(numbers, func(a *agent) error { return syscall.Kill(a.process.PID(), signal) })
	}
	return repeated(10*time.Second, send(syscall.SIGSTOP), send(syscall.SIGCONT), 3*time.Second)
}
