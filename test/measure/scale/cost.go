package main

import (
	"context"
	"os"
	"time"

	"github.com/prometheus/procfs"
	"github.com/taintlet/taintlet/test/bed"
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
	if _, err := s.cluster.Client().Discovery().RESTClient().Get().AbsPath("/debug/pprof/heap").Param("gc", "1").DoRaw(ctx); err != nil {
		return cost{}, err
	}
	page, err := s.metrics(ctx)
	c.Live = (bed.Metric(page, "go_memstats_heap_alloc_bytes") + bed.Metric(page, "go_memstats_stack_inuse_bytes")) / mebibyte
	c.Goroutines = bed.Metric(page, "go_goroutines")
	return c, err
}

// metrics is the API server's page of metrics.
func (s *stage) metrics(ctx context.Context) (string, error) {
	page, err := s.cluster.Client().Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	return string(page), err
}

// keepTook is how long the keep policy took for each write that it judged between two pages of
// metrics, on average, in ms.
func keepTook(before, after string) float64 {
	grown := func(name string) float64 {
		const checks, policy = "apiserver_mutating_admission_policy_check_duration_seconds_", `policy="taintlet-keep"`
		return bed.Sum(after, checks+name, policy) - bed.Sum(before, checks+name, policy)
	}
	if grown("count") == 0 {
		return 0
	}
	return 1000 * grown("sum") / grown("count")
}
