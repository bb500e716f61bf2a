package culprit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/fixtures"
	"github.com/taintlet/taintlet/test/measure"
	"github.com/taintlet/taintlet/test/process"
)

const (
	sleepersEnv = "TAINTLET_SLEEPERS"
	// reactions is how many incidents each of the two agents has.
	reactions = 6
	// reactionConfig has each incident end soon. A host of 5,000 processes is read in some
	// 70 ms, and has to wait 7 s for the next reading: two incidents take longer.
	reactionConfig = `
memory: {stalledPercent: 0, debounce: {clearAfter: 3s, maxClearAfter: 3s}}
rules: [{condition: MemoryPressure, level: Degraded, taint: {key: example.com/scarce-memory, effect: NoSchedule}}]
writeBudget: {interval: 1s}
`
)

// TestReactionAmongProcesses measures, with TAINTLET_SLEEPERS=5000 processes, how long it
// takes from a bad sample, as the agents' metrics show it, to the taint: that of an agent
// that reads the processes because of the sample, and that of one that has none to read.
// They take turns. It demands that the processes are read in each incident, and no time.
func TestReactionAmongProcesses(t *testing.T) {
	cluster.SkipUnlessRequired(t)
	count, err := strconv.Atoi(os.Getenv(sleepersEnv))
	if err != nil {
		t.Skipf("takes minutes and thousands of processes: set %s=5000 to measure it", sleepersEnv)
	}
	origin := measure.Here("../..")
	startSleepers(t, count)
	c := cluster.New(t, cluster.Options{})
	if err := c.GrantAsAgent(t.Context(), bed.User); err != nil {
		t.Fatal(err)
	}
	program, err := process.BuildAgent(t.Context(), t.TempDir(), process.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	reader, bare := newReactor(t, c, program, "reader"), newReactor(t, c, program, "bare")
	for _, path := range processes(t) {
		reader.show(filepath.Base(path))
	}
	t.Logf("%d processes", len(processes(t)))
	for range reactions {
		reader.incident("took")
		bare.incident("")
	}
	text := fmt.Sprintf("From the first bad sample to the taint:\n\n| processes | incidents | median | most |\n|---|---|---|---|\n%s%s",
		reader.row(strconv.Itoa(count)), bare.row("none"))
	t.Log(text)
	if path := os.Getenv("TAINTLET_REACTION_RESULTS"); path != "" {
		write(t, path, fmt.Sprintf("# The taint beside many processes\n\nWritten by `make culprit` on %s. %s\n\n%s", origin.Date, origin, text))
	}
}

func processes(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// startSleepers starts processes that do nothing, for the length of the test.
func startSleepers(t *testing.T, count int) {
	t.Helper()
	const script = `i=0; while [ $i -lt $0 ]; do sleep infinity & i=$((i+1)); done; wait`
	shell := exec.Command("sh", "-c", script, strconv.Itoa(count))
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	before := len(processes(t))
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Kill(-shell.Process.Pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		_ = shell.Wait() // it was killed
	})
	cluster.Eventually(t, "that all sleep", func() error {
		if now := len(processes(t)); now < before+count*9/10 {
			return fmt.Errorf("%d of %d run", now-before, count)
		}
		return nil
	})
}

// reactor is an agent on a host of files that has this machine's processes, or none.
type reactor struct {
	t       *testing.T
	cluster *cluster.Cluster
	node    string
	host    *fixtures.Host
	agent   *bed.Agent
	times   []time.Duration
}

func newReactor(t *testing.T, c *cluster.Cluster, program, node string) *reactor {
	t.Helper()
	r := &reactor{t: t, cluster: c, node: c.Register(t, node).Name, host: fixtures.NewHost(t)}
	r.show("self")
	config := filepath.Join(t.TempDir(), "config.yaml")
	write(t, config, bed.ConfigHeader+reactionConfig)
	identity, err := c.Config(bed.User)
	if err != nil {
		t.Fatal(err)
	}
	r.agent = bed.StartAgent(t, program, append(r.host.Flags(), "--kubeconfig="+cluster.Kubeconfig(t, identity),
		"--config="+config, "--node-name="+r.node, "--listen=127.0.0.1:0")...)
	r.agent.WaitMetric(`taintlet_condition_severity{condition="MemoryPressure"} 0`)
	return r
}

// show has the host show something of this machine's /proc.
func (r *reactor) show(name string) {
	r.t.Helper()
	if err := os.Symlink(filepath.Join("/proc", name), filepath.Join(r.host.Dir, "proc", name)); err != nil {
		r.t.Fatal(err)
	}
}

// incident has the host run out of memory, waits until the condition says that, and has it
// recover.
func (r *reactor) incident(says string) {
	r.t.Helper()
	const scarce = "example.com/scarce-memory"
	before := r.badSamples()
	r.host.Memory(2)
	for r.badSamples() == before {
		time.Sleep(5 * time.Millisecond)
	}
	begin := time.Now()
	r.wait(cluster.HasTaint(scarce, corev1.TaintEffectNoSchedule))
	r.times = append(r.times, time.Since(begin))
	r.wait(func(node *corev1.Node) bool {
		said := messageOf(node, corev1.NodeConditionType("HostMemoryPressure"))
		return said != "" && strings.Contains(said, says)
	})
	r.host.Memory(50)
	r.wait(func(node *corev1.Node) bool { return !cluster.HasTaint(scarce, corev1.TaintEffectNoSchedule)(node) })
}

// row is the agent's row of the results.
func (r *reactor) row(name string) string {
	sorted := slices.Sorted(slices.Values(r.times))
	return fmt.Sprintf("| %s | %d | %d ms | %d ms |\n", name, len(sorted), sorted[len(sorted)/2].Milliseconds(), sorted[len(sorted)-1].Milliseconds())
}

// badSamples is how many samples of the memory were bad.
func (r *reactor) badSamples() float64 {
	r.t.Helper()
	_, page := r.agent.Get("/metrics")
	all := bed.Sum(page, "taintlet_probe_samples_total", `condition="MemoryPressure"`)
	return all - bed.Sum(page, "taintlet_probe_samples_total", `condition="MemoryPressure"`, `level="OK"`)
}

func (r *reactor) wait(holds func(*corev1.Node) bool) {
	r.t.Helper()
	if _, err := r.cluster.WaitNode(r.t.Context(), r.node, holds); err != nil {
		r.t.Fatal(err)
	}
}
