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
	seeds, wrong, writes, starts int
	worst                        []time.Duration // from the last fault until the Node was right
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
	if len(s.judge.verdicts()) > 0 {
		p.wrong++
	}
}

// has reports whether a trouble befell an agent: one of requests, a request.
func (p *points) has(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begins[name] == 0 {
		return false
	}
	isOfRequests := strings.HasPrefix(name, webhookName("")) || slices.ContainsFunc(append(requestFaults(), watchFaults()...), func(f *fault) bool { return f.name == name })
	return !isOfRequests || len(p.kinds(name)) > 0
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
