package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/client-go/rest"
)

const (
	ticks    = 100 // USER_HZ of Linux
	mebibyte = 1 << 20
)

// used is what a process has used since it began, and holds now.
type used struct {
	PID int
	CPU float64 // seconds
	RSS uint64  // bytes
}

// cost is what each process used within some time.
type cost struct {
	Seconds float64
	// Cores that each process used, and its RSS in MiB at the end.
	Cores, RSS map[string]float64
	// Live is the API server's heap after a collection, with its stacks, in MiB;
	// Goroutines are its own.
	Live, Goroutines float64
	// Late is how late the timers of this program's own processes were.
	Late map[string]latency
}

// Names of this program's own processes in a cost.
const (
	harnessName  = "harness"
	agentsName   = "hollow agents"
	foreignName  = "foreign client"
	kubeletsName = "kubelets"
	// othersName stands for all other programs of the machine.
	othersName = "other programs"
)

// own are the processes that measure and that keep the Nodes alive. The agents are what is
// measured.
func own() []string { return []string{harnessName, kubeletsName, foreignName} }

// ownCores are those of this program's own work.
func (c cost) ownCores() float64 {
	sum := 0.0
	for _, name := range own() {
		sum += c.Cores[name]
	}
	return sum
}

func (s *stage) used() (map[string]used, error) {
	pids := s.cluster.Processes()
	pids[harnessName] = os.Getpid()
	for name, c := range s.children() {
		pids[name] = c.process.PID()
	}
	machine, err := busy()
	if err != nil {
		return nil, err
	}
	all := map[string]used{othersName: {CPU: machine}}
	for name, pid := range pids {
		p, err := procfs.NewProc(pid)
		if err != nil {
			return nil, err
		}
		stat, err := p.Stat()
		if err != nil {
			return nil, err
		}
		all[name] = used{pid, float64(stat.UTime+stat.STime) / ticks, uint64(stat.ResidentMemory())} //nolint:gosec // no negative memory
	}
	return all, nil
}

// busy is how many seconds all cores together have worked since the boot.
func busy() (float64, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	stat, err := fs.Stat()
	if err != nil {
		return 0, err
	}
	t := stat.CPUTotal
	return t.User + t.Nice + t.System + t.IRQ + t.SoftIRQ + t.Steal, nil
}

// during measures what the processes use while do runs. A process that was replaced
// meanwhile counts from its own start.
func (s *stage) during(ctx context.Context, do func() error) (cost, error) {
	begin := time.Now()
	before, err := s.used()
	if err != nil {
		return cost{}, err
	}
	if err := do(); err != nil {
		return cost{}, err
	}
	after, err := s.used()
	if err != nil {
		return cost{}, err
	}
	c := cost{Seconds: time.Since(begin).Seconds(), Cores: map[string]float64{}, RSS: map[string]float64{}}
	others := 0.0
	for name, u := range after {
		used := u.CPU
		if b := before[name]; b.PID == u.PID {
			used -= b.CPU
		}
		c.Cores[name], c.RSS[name] = used/c.Seconds, float64(u.RSS)/mebibyte
		if name != othersName {
			others += c.Cores[name]
		}
	}
	c.Cores[othersName] -= others
	if c.Late, err = s.late(begin, begin.Add(time.Since(begin))); err != nil {
		return cost{}, err
	}
	// A collection, so that what is live counts and not what was.
	if _, err := s.get(ctx, "/debug/pprof/heap?gc=1"); err != nil {
		return cost{}, err
	}
	metrics, err := s.metrics(ctx)
	if err != nil {
		return cost{}, err
	}
	c.Live = (metrics["go_memstats_heap_alloc_bytes"] + metrics["go_memstats_stack_inuse_bytes"]) / mebibyte
	c.Goroutines = metrics["go_goroutines"]
	return c, nil
}

// get asks the API server as the administrator.
func (s *stage) get(ctx context.Context, path string) (string, error) {
	client, err := rest.HTTPClientFor(s.cluster.Admin())
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.cluster.URL()+path, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", path, response.Status)
	}
	return string(body), err
}

// metrics returns the API server's, by their text up to the value.
func (s *stage) metrics(ctx context.Context) (map[string]float64, error) {
	text, err := s.get(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	all := map[string]float64{}
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, mebibyte)
	for lines.Scan() {
		name, value, found := cutLast(lines.Text(), " ")
		if number, err := strconv.ParseFloat(value, 64); found && err == nil && !strings.HasPrefix(name, "#") {
			all[name] = number
		}
	}
	return all, lines.Err()
}

func cutLast(text, at string) (before, after string, found bool) {
	i := strings.LastIndex(text, at)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(at):], true
}

// evaluations are how long the API server's policies took for each write that they
// judged, on average, in ms.
func evaluations(before, after map[string]float64) map[string]float64 {
	const checks = "admission_policy_check_duration_seconds_"
	sums, counts := map[string]float64{}, map[string]float64{}
	for name, value := range after {
		_, labels, found := strings.Cut(name, checks)
		if !found {
			continue
		}
		policy := labelOf(labels, "policy")
		if policy == "" {
			continue
		}
		grown := value - before[name]
		switch {
		case strings.HasPrefix(labels, "sum"):
			sums[policy] += grown
		case strings.HasPrefix(labels, "count"):
			counts[policy] += grown
		}
	}
	means := map[string]float64{}
	for policy, count := range counts {
		if count > 0 {
			means[policy] = 1000 * sums[policy] / count
		}
	}
	return means
}

func labelOf(labels, name string) string {
	_, rest, found := strings.Cut(labels, name+`="`)
	if !found {
		return ""
	}
	value, _, _ := strings.Cut(rest, `"`)
	return value
}
