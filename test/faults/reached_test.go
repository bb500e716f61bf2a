package faults

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/measure"
)

// resultsEnv is a file into which the results are written.
const resultsEnv = "TAINTLET_FAULT_RESULTS"

// reached counts the faults that befell an agent.
var reached = points{count: map[string]int{}, begins: map[string]int{}}

type points struct {
	mu sync.Mutex
	// count has the faults of requests, by name and kind of request, begins the troubles.
	count, begins map[string]int
	// The rest is of the seeds that ended.
	seeds, writes, starts int
	wrong                 int             // those that failed
	worst                 []time.Duration // from the last fault until the Node was right
}

func (p *points) add(from *proxy) {
	from.mu.Lock()
	counted := maps.Clone(from.reached)
	from.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, count := range counted {
		p.count[name] += count
	}
}

// befell counts a fault of requests that the proxy does not see.
func (p *points) befell(name, kind string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count[name+" | "+kind]++
}

func (p *points) begun(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begins[name]++
}

func (p *points) ended(s *scene, worst time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seeds++
	p.writes += s.judge.written()
	p.starts += s.starts()
	p.worst = append(p.worst, worst)
}

func (p *points) fails() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wrong++
}

// requestKinds are those of an agent.
func requestKinds() []string {
	return []string{
		"create events", "get leases", "get mutatingadmissionpolicybindings", "get nodes", "list endpointslices",
		"list nodes", "patch nodes", "patch nodes/status", "update leases", "watch nodes",
	}
}

// pointsOf are the kinds of requests that a trouble has to befall; none: it is not of requests.
func pointsOf(name string) []string {
	is := func(f *fault) bool { return f.name == name }
	switch {
	case name == webhookName(hookStrips):
		return []string{"patch nodes"}
	case strings.HasPrefix(name, webhookName("")):
		return []string{"patch nodes", "patch nodes/status"}
	case name == "stale reads", name == "time travel":
		return cachedReads()
	case slices.ContainsFunc(watchFaults(), is):
		return []string{"watch nodes"}
	case slices.ContainsFunc(requestFaults(), is):
		return requestKinds()
	}
	return nil
}

// point is a trouble, and the kind of requests that it should have befallen; empty: any.
type point struct{ trouble, kind string }

func (p point) String() string {
	if p.kind == "" {
		return p.trouble
	}
	return p.trouble + " of " + p.kind
}

// pointOf is the point of that text.
func pointOf(text string) point {
	trouble, kind, _ := strings.Cut(text, " of ")
	if !slices.Contains(requestKinds(), kind) {
		trouble, kind = text, ""
	}
	return point{trouble, kind}
}

// unreachedPoints are the troubles that befell no agent, and if the run was full also the kinds
// of requests that a trouble should have befallen.
func (p *points) unreachedPoints(isFull bool) (missing []point) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, kind := range troubles() {
		wanted := pointsOf(kind.name)
		left := slices.DeleteFunc(slices.Clone(wanted), func(of string) bool { return p.count[kind.name+" | "+of] > 0 })
		switch {
		case unavailable(kind.name) != "":
		case p.begins[kind.name] == 0, len(wanted) > 0 && len(left) == len(wanted):
			missing = append(missing, point{trouble: kind.name})
		case isFull:
			for _, of := range left {
				missing = append(missing, point{kind.name, of})
			}
		}
	}
	return missing
}

// kinds are the kinds of requests that a fault befell, with how often.
func (p *points) kinds(name string) (kinds []string) {
	for _, key := range slices.Sorted(maps.Keys(p.count)) {
		if fault, kind, _ := strings.Cut(key, " | "); fault == name {
			kinds = append(kinds, fmt.Sprintf("%s %d", kind, p.count[key]))
		}
	}
	return kinds
}

// writeResults writes what the seeds did.
func writeResults(t *testing.T, path string, origin measure.Origin, first, count uint64, took time.Duration) {
	t.Helper()
	reached.mu.Lock()
	defer reached.mu.Unlock()
	slices.Sort(reached.worst)
	var text strings.Builder
	fmt.Fprintf(&text, "# What faults do to an agent\n\nWritten by `make faults SEEDS=%d FIRST=%d`: %d seeds ended in %s, %d at a time, on %s.\n%s\n\n",
		count, first, reached.seeds, took.Round(time.Second), inParallel, origin.Date, origin)
	fmt.Fprintf(&text, "- %d seeds broke a rule of the judge.\n- The agents were started %d times and wrote their Nodes %d times.\n",
		reached.wrong, reached.starts, reached.writes)
	if n := len(reached.worst); n > 0 {
		fmt.Fprintf(&text, "- After the last fault of a seed the Node was right within %s in half of the seeds, within %s in 99 of 100, and within %s in the worst.\n",
			reached.worst[n/2].Round(10*time.Millisecond), reached.worst[n*99/100].Round(10*time.Millisecond), reached.worst[n-1].Round(10*time.Millisecond))
	}
	text.WriteString("\n| fault | steps | requests that it befell |\n|---|---|---|\n")
	for _, kind := range troubles() {
		fmt.Fprintf(&text, "| %s | %d | %s |\n", kind.name, reached.begins[kind.name], strings.Join(reached.kinds(kind.name), ", "))
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil { //nolint:gosec // a page of the repository
		t.Error(err)
	}
}

// A fault that befell nobody, and in a full run one that a kind of request was spared, is told.
func TestUnreachedPoints(t *testing.T) {
	p := points{count: map[string]int{}, begins: map[string]int{}}
	all := troubles()
	for _, kind := range all {
		p.begins[kind.name] = 1
		for _, of := range pointsOf(kind.name) {
			p.count[kind.name+" | "+of] = 1
		}
	}
	if left := p.unreachedPoints(true); len(left) != 0 {
		t.Errorf("all were reached, but for %v", left)
	}
	delete(p.count, "conflict | get nodes")
	if left := p.unreachedPoints(false); len(left) != 0 {
		t.Errorf("a run that is not full lacks %v", left)
	}
	if left := p.unreachedPoints(true); len(left) != 1 || left[0] != (point{"conflict", "get nodes"}) {
		t.Errorf("without conflicts of get nodes, %v was not reached", left)
	}
	delete(p.begins, "SIGKILL")
	if left := p.unreachedPoints(false); len(left) != 1 || left[0] != (point{trouble: "SIGKILL"}) {
		t.Errorf("without SIGKILL, %v was not reached", left)
	}
}
