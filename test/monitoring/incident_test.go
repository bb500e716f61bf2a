package monitoring

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/fixtures"
	"github.com/taintlet/taintlet/test/process"
)

// incident is five agents, each on a host of its own, and what happens to them:
//   - worker-1 runs out of memory, and recovers by way of the value between the
//     thresholds;
//   - worker-2 has a fork bomb, again and again;
//   - worker-3 cannot read its memory;
//   - worker-4 gets an invalid configuration;
//   - worker-5 vanishes.
type incident struct {
	t          *testing.T
	prometheus *Prometheus
	hosts      map[string]*fixtures.Host
	agents     map[string]*bed.Agent
	// start, sick and end are the beginning, the worst moment and the end.
	start, sick, end time.Time
	stalled          time.Duration
}

const workers = 5

// quick makes an incident of minutes last seconds. One token makes the second clear
// wait.
const quick = `
memory: {period: 1s, debounce: {clearAfter: 10s}}
disk: {period: 1s}
pid: {period: 1s, debounce: {clearAfter: 5s}}
writeBudget: {burst: 1, interval: 10m}
`

// startAgent starts an agent without an API server. It is the one place that knows
// the agent's flags.
func startAgent(t *testing.T, program, node string, host *fixtures.Host) *bed.Agent {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte(bed.ConfigHeader+quick), 0o600); err != nil {
		t.Fatal(err)
	}
	return bed.StartAgent(t, program, append(host.Flags(), "--dry-run=client", "--node-name="+node, "--config="+config, "--listen=127.0.0.1:0")...)
}

// newIncident starts the agents and a Prometheus whose alerts do not wait.
func newIncident(t *testing.T) *incident {
	t.Helper()
	program, err := process.BuildAgent(t.Context(), t.TempDir(), process.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	i := &incident{t: t, hosts: map[string]*fixtures.Host{}, agents: map[string]*bed.Agent{}}
	var targets []Target
	for n := range workers {
		node := worker(n + 1)
		host := fixtures.NewHost(t)
		host.Write("proc/pressure/memory", pressure(0, 0))
		i.hosts[node] = host
		if node == worker(3) {
			host.Write("proc/meminfo", "MemTotal: 16\x00")
		}
		i.agents[node] = startAgent(t, program, node, host)
		targets = append(targets, Target{node, i.agents[node].WaitLog(`msg="taintlet starts".* listen=(\S+)`)[1]})
	}
	i.prometheus = StartPrometheus(t, impatientRules(t), targets)
	return i
}

func worker(n int) string { return fmt.Sprintf("worker-%d", n) }

// impatientRules writes the rules without the time that alerts wait, and returns the
// path.
func impatientRules(t *testing.T) string {
	t.Helper()
	rules, err := os.ReadFile(folder + "rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, regexp.MustCompile(`(?m)^ +for: .*$`).ReplaceAll(rules, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// pressure is the file of tasks that waited that long altogether.
func pressure(some, full time.Duration) string {
	const line = "%s avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n"
	return fmt.Sprintf(line+line, "some", some.Microseconds(), "full", full.Microseconds())
}

// run plays the incident.
func (i *incident) run() {
	i.t.Helper()
	const first, second = "worker-1", "worker-2"
	p := i.prometheus
	i.pass(1)
	i.start = time.Now()
	i.pass(12)
	i.agents[worker(4)].Reconfigure("memory: {availablePercent: lots}\n")
	i.agents[worker(5)].Terminate()
	for step := range 12 {
		i.memory(50 - 4*step)
		i.hosts[second].Tasks(100 + 2700*step)
		i.pass(1)
	}
	i.memory(3)
	p.Wait("a taint on both", `count(count by (node) (taintlet_taint_desired)) == 2`)
	p.Wait("the configuration refused", `taintlet_config_refused == 1`)
	for range 15 {
		i.memory(3)
		i.pass(1)
	}
	i.sick = time.Now()
	i.memory(6) // between the thresholds
	i.hosts[second].Tasks(200)
	i.pass(10)
	i.memory(60)
	p.Wait(first+" well", `taintlet_condition_level{node="worker-1",condition="MemoryPressure",level="OK"} == 1`)
	p.Wait(second+" well", `taintlet_condition_level{node="worker-2",condition="PIDPressure",level="OK"} == 1`)
	i.hosts[second].Tasks(32000)
	p.Wait(second+" tainted again", `taintlet_taint_desired{node="worker-2"}`)
	i.hosts[second].Tasks(200)
	p.Wait(second+" waits for a token", // not only for clearAfter, which is 20 s at most
		`taintlet_condition_clears_in_seconds{node="worker-2"} > 60 and taintlet_condition_severity{node="worker-2",condition="PIDPressure"} < 50`)
	i.pass(8)
	i.end = time.Now()
}

// memory makes that percentage available on worker-1. With little of it, tasks wait.
func (i *incident) memory(percent int) {
	host := i.hosts[worker(1)]
	host.Memory(percent)
	if percent < 15 {
		i.stalled += scrapeInterval / 3
		host.Write("proc/pressure/memory", pressure(i.stalled, i.stalled/4))
	}
}

// pass lets that many scrapes pass.
func (i *incident) pass(scrapes int) {
	i.t.Helper()
	i.prometheus.WaitScrapes(worker(1), scrapes)
}
