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
	wrong                 []plan          // those that failed
	around                []plan          // those of them that the decider alone does not explain
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

func (p *points) fails(played plan, isOfDecider bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wrong = append(p.wrong, played); !isOfDecider {
		p.around = append(p.around, played)
	}
}

// failed are the plans that failed by what is around the decider.
func (p *points) failed() []plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.around)
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

// requireReached fails a long run if the seeds left something out.
func requireReached(t *testing.T, all []branch) {
	t.Helper()
	for _, missing := range reached.unreachedPoints(isFull()) {
		t.Errorf("no seed has reached the point %q", missing)
	}
	exceptions, err := readExceptions()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range unreached(all, exceptions) {
		if isFull() {
			t.Errorf("no seed has reached the branch %s", b)
		} else {
			t.Logf("these seeds have not reached the branch %s", b)
		}
	}
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

// writeBranches writes how many branches of the decider were reached.
func writeBranches(text *strings.Builder, all []branch, exceptions []exception) {
	count, perFile := 0, map[string][2]int{}
	for _, b := range all {
		n := perFile[b.file]
		if n[1]++; b.isReached {
			n[0]++
			count++
		}
		perFile[b.file] = n
	}
	fmt.Fprintf(text, "- The agents that ended by SIGTERM went through %d of the %d branches of the decider. [unreached.txt](unreached.txt) has a reason for %d of the others.\n",
		count, len(all), len(all)-count-len(unreached(all, exceptions)))
	text.WriteString("\n| file of agent/decide | branches | reached |\n|---|---|---|\n")
	for _, file := range slices.Sorted(maps.Keys(perFile)) {
		fmt.Fprintf(text, "| %s | %d | %d |\n", file, perFile[file][1], perFile[file][0])
	}
}

// writeResults writes what the seeds did.
func writeResults(t *testing.T, path string, origin measure.Origin, first, count uint64, took time.Duration, all []branch) {
	t.Helper()
	reached.mu.Lock()
	defer reached.mu.Unlock()
	slices.Sort(reached.worst)
	var text strings.Builder
	fmt.Fprintf(&text, "# What faults do to an agent\n\nWritten by `make faults SEEDS=%d FIRST=%d`: %d seeds ended in %s, %d at a time, on %s.\n%s\n\n",
		count, first, reached.seeds, took.Round(time.Second), inParallel, origin.Date, origin)
	fmt.Fprintf(&text, "- %d seeds broke a rule of the judge.\n- The agents were started %d times and wrote their Nodes %d times.\n",
		len(reached.wrong), reached.starts, reached.writes)
	if n := len(reached.worst); n > 0 {
		fmt.Fprintf(&text, "- After the last fault of a seed the Node was right within %s in half of the seeds, within %s in 99 of 100, and within %s in the worst.\n",
			reached.worst[n/2].Round(10*time.Millisecond), reached.worst[n*99/100].Round(10*time.Millisecond), reached.worst[n-1].Round(10*time.Millisecond))
	}
	exceptions, err := readExceptions()
	if err != nil {
		t.Error(err)
	}
	writeBranches(&text, all, exceptions)
	text.WriteString("\n| fault | steps | requests that it befell |\n|---|---|---|\n")
	for _, kind := range troubles() {
		fmt.Fprintf(&text, "| %s | %d | %s |\n", kind.name, reached.begins[kind.name], strings.Join(reached.kinds(kind.name), ", "))
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil { //nolint:gosec // a page of the repository
		t.Error(err)
	}
}
