package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent"
	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/slots"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

const header = "apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\n"

// soon is when a new configuration is in force at the latest: read within 10 s,
// then up to 10 s of jitter.
const soon = 21 * time.Second

// reloading is an agent whose configuration file the test changes.
type reloading struct {
	t      *testing.T
	file   string
	events *agent.Told
	mu     sync.Mutex
	made   map[probes.Condition]int // probes
}

func (r *reloading) write(text string) {
	r.t.Helper()
	if err := os.WriteFile(r.file+".new", []byte(header+text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(r.file+".new", r.file); err != nil {
		r.t.Fatal(err)
	}
}

// told returns the Events of a reason since it was asked last.
func (r *reloading) told(reason string) []string {
	var told []string
	for _, event := range r.events.Take() {
		if strings.Contains(event, reason) {
			told = append(told, event)
		}
	}
	return told
}

func (r *reloading) probesMade(c probes.Condition) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.made[c]
}

func runReloading(t *testing.T, test func(t *testing.T, r *reloading, by map[probes.Condition]*probe, c *client)) {
	t.Helper()
	runReloadingFrom(t, "", nil, test)
}

func runReloadingFrom(t *testing.T, text string, s slots.Client, test func(t *testing.T, r *reloading, by map[probes.Condition]*probe, c *client)) {
	t.Helper()
	r := &reloading{t: t, file: filepath.Join(t.TempDir(), "config.yaml"), events: &agent.Told{}, made: map[probes.Condition]int{}}
	r.write(text)
	cfg, err := config.HostSchema().Load(r.file)
	if err != nil {
		t.Fatal(err)
	}
	a := &agent.Agent{Config: cfg, Reload: config.HostSchema().Reloader(r.file, cfg.Hash), Recorder: r.events, Slots: s}
	by := map[probes.Condition]*probe{}
	a.NewProbe = func(c config.Condition) probes.Probe {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.made[c.Name]++
		return by[c.Name]
	}
	runAgent(t, a, by, func(t *testing.T, _ map[probes.Condition]*probe, c *client) {
		r.t = t
		test(t, r, by, c)
	})
}

// A file that changes again and again does not put the heartbeat off: without one,
// another agent would take this one to be gone.
func TestReloadsDoNotPutTheHeartbeatOff(t *testing.T) {
	runReloading(t, func(t *testing.T, r *reloading, _ map[probes.Condition]*probe, c *client) {
		time.Sleep(time.Minute)
		before := c.count()
		for i := range 60 {
			r.write(fmt.Sprintf("writeBudget: {interval: %dm}\n", 2+i%2))
			time.Sleep(soon)
		}
		if writes := c.count() - before; writes < 3 {
			t.Errorf("%d heartbeats in 21 minutes", writes)
		}
	})
}

// Only the probe whose section has changed starts anew; a change of debounce
// or of rules starts none.
func TestReloadStartsOnlyChangedProbesAnew(t *testing.T) {
	runReloading(t, func(t *testing.T, r *reloading, by map[probes.Condition]*probe, _ *client) {
		r.write("memory: {availablePercent: 10, period: 1s}\ndisk: {debounce: {clearAfter: 5s}}\n")
		time.Sleep(soon)
		if told := r.told("ConfigurationReloaded"); len(told) != 1 {
			t.Errorf("Events of the reload: %v", told)
		}
		for _, c := range config.Default().Names() {
			want := 1
			if c == probes.MemoryPressure {
				want = 2
			}
			if got := r.probesMade(c); got != want {
				t.Errorf("%s: %d probes made, want %d", c, got, want)
			}
		}
		begin := time.Now()
		time.Sleep(10 * time.Second)
		if got := len(by[probes.MemoryPressure].since(begin)); got < 8 || got > 12 {
			t.Errorf("%d samples at memory in 10 s: the old probe samples on, or none does", got)
		}
	})
}

// A rule that the file drops loses its taint, one that it changes moves, and
// the agent goes on as it was.
func TestReloadMovesAndDropsTaints(t *testing.T) {
	runReloading(t, func(t *testing.T, r *reloading, by map[probes.Condition]*probe, c *client) {
		by[probes.MemoryPressure].set(probes.Degraded)
		time.Sleep(5 * time.Second)
		if !c.has(corev1.TaintNodeMemoryPressure) {
			t.Fatal("no taint to begin with")
		}
		before := c.count()
		r.write("rules:\n- {condition: MemoryPressure, level: Degraded, taint: {key: example.com/tired, effect: NoSchedule}}\n")
		time.Sleep(soon)
		if c.has(corev1.TaintNodeMemoryPressure) || !c.has("example.com/tired") {
			t.Error("the taint did not move to the new rule's key")
		}
		if got := c.count() - before; got != 1 {
			t.Errorf("%d writes for one reload", got)
		}
		r.write("rules: []\n")
		time.Sleep(soon)
		if c.has("example.com/tired") {
			t.Error("the taint of a dropped rule of one's own stays")
		}
	})
}

// An invalid file changes nothing and is told once; so is a file that is gone.
// Going back to what is in force ends the complaint.
func TestReloadRefusesWhatIsInvalid(t *testing.T) {
	runReloading(t, func(t *testing.T, r *reloading, by map[probes.Condition]*probe, c *client) {
		for _, c := range []struct {
			spoil func()
			want  string
		}{
			{func() { r.write("memory: {availablePercent: 500, perriod: 1s}\n") }, "memory.availablePercent: Invalid value"},
			{func() { r.write("memory: [\n") }, "not YAML"},
			{func() { os.Remove(r.file) }, "no such file"}, //nolint:errcheck // seen below
		} {
			c.spoil()
			time.Sleep(2 * time.Minute)
			told := r.told("ConfigurationRefused")
			if len(told) != 1 || !strings.Contains(told[0], c.want) {
				t.Errorf("Events %v, want one with %q", told, c.want)
			}
		}
		by[probes.MemoryPressure].set(probes.Degraded)
		time.Sleep(5 * time.Second)
		if !c.has(corev1.TaintNodeMemoryPressure) {
			t.Error("the last good configuration is not in force")
		}
		if got := r.probesMade(probes.MemoryPressure); got != 1 {
			t.Errorf("%d probes made", got)
		}
		for _, mended := range []struct{ file, want string }{
			{"", "is still in force"}, {"pid: {usedPercent: 80}\n", "is in force; the earlier one was"},
		} {
			r.write(mended.file)
			time.Sleep(soon)
			if told := r.told("ConfigurationReloaded"); len(told) != 1 || !strings.Contains(told[0], mended.want) {
				t.Errorf("Events %v after the file was mended, want one with %q", told, mended.want)
			}
		}
	})
}

// What was seen by the old thresholds does not count by the new ones: two bad
// samples before and one after are not three.
func TestReloadForgetsWhatTheOldThresholdsMadeBad(t *testing.T) {
	runReloading(t, func(t *testing.T, r *reloading, by map[probes.Condition]*probe, c *client) {
		disk := by[probes.DiskPressure]
		slow := "disk: {period: 10m, debounce: {badSamples: 3, samples: 32}, availablePercent: "
		r.write(slow + "10}\n")
		time.Sleep(soon)
		disk.set(probes.Degraded)
		disk.wake <- struct{}{}
		time.Sleep(150 * time.Millisecond) // two bad samples
		disk.set(probes.OK)
		time.Sleep(soon)
		if c.has(corev1.TaintNodeDiskPressure) {
			t.Fatal("two bad samples set a taint, three are needed")
		}
		samplesBefore := len(disk.since(time.Time{}))
		r.write(slow + "11}\n")
		disk.set(probes.Degraded)
		for len(disk.since(time.Time{})) == samplesBefore {
			time.Sleep(100 * time.Millisecond)
		}
		disk.set(probes.OK)
		time.Sleep(time.Minute)
		if c.has(corev1.TaintNodeDiskPressure) {
			t.Error("bad samples by the old thresholds counted by the new ones")
		}
	})
}

// Fewer slots: a Node whose slot is none any more steps down, and does not ask
// for a Lease that is gone. With another slot it goes on.
func TestReloadOfFewerSlotsStepsDown(t *testing.T) {
	evicting := func(slots int) string {
		return fmt.Sprintf(`
eviction: {slots: %d, interval: 0s}
rules:
- {condition: MemoryPressure, level: Degraded, taint: {key: node.kubernetes.io/memory-pressure, effect: NoSchedule}}
- {condition: MemoryPressure, level: Critical, taint: {key: node.kubernetes.io/memory-pressure, effect: NoExecute}}
`, slots)
	}
	s := &leases{free: true, number: 2}
	runReloadingFrom(t, evicting(3), s, func(t *testing.T, r *reloading, by map[probes.Condition]*probe, c *client) {
		by[probes.MemoryPressure].set(probes.Critical)
		time.Sleep(90 * time.Second)
		if !c.carries(evict()) {
			t.Fatal("no eviction")
		}
		s.set(func(s *leases) { s.free = false })
		r.write(evicting(1))
		time.Sleep(soon + time.Minute)
		if c.carries(evict()) || !c.has(corev1.TaintNodeMemoryPressure) {
			t.Error("the eviction goes on by a slot that is none, or the lesser taint is gone too")
		}
		before := s.seen()
		time.Sleep(time.Hour)
		if after := s.seen(); len(after.released) > 0 || len(after.renewed) > len(before.renewed) || len(after.acquired) == len(before.acquired) {
			t.Errorf("%d times released and %d times renewed what is no slot, %d times asked for another", len(after.released), len(after.renewed)-len(before.renewed), len(after.acquired)-len(before.acquired))
		}
		s.set(func(s *leases) { s.free, s.number = true, 0 })
		time.Sleep(2 * time.Minute)
		if !c.carries(evict()) {
			t.Error("no eviction with a slot that is one")
		}
	})
}

// A condition that others report comes and goes with the configuration: its probe, its taint
// and its series.
func TestReloadDropsAConditionOfOthers(t *testing.T) {
	b := &beside{}
	r := &reloading{t: t, file: filepath.Join(t.TempDir(), "config.yaml"), events: &agent.Told{}}
	a := &agent.Agent{Config: config.Default(), Reload: config.HostSchema().Reloader(r.file, ""), Recorder: r.events, Client: b}
	r.write("")
	by := map[probes.Condition]*probe{}
	a.NewProbe = func(c config.Condition) probes.Probe { return by[c.Name] }
	runAgent(t, a, by, func(t *testing.T, _ map[probes.Condition]*probe, c *client) {
		r.t = t
		r.write("conditions: [{type: KernelDeadlock, staleAfter: 0s}]\nrules:\n- {condition: KernelDeadlock, level: Degraded, taint: {key: example.com/deadlock, effect: NoSchedule}}\n")
		time.Sleep(soon)
		b.write(func(node *taints.Node) {
			node.Conditions = append(node.Conditions, taints.NodeCondition{Type: "KernelDeadlock", Status: taints.ConditionTrue, Reason: "TaskHung"})
		})
		time.Sleep(15 * time.Second)
		if !c.has("example.com/deadlock") {
			t.Fatal("no taint")
		}
		r.write("")
		time.Sleep(soon)
		if c.has("example.com/deadlock") {
			t.Error("the taint of a condition that was dropped is there")
		}
		if told := r.told("ConfigurationReloaded"); len(told) == 0 || !strings.Contains(told[len(told)-1], "conditions[KernelDeadlock] {") {
			t.Errorf("Events of the reload: %v", told)
		}
		before := c.count()
		time.Sleep(30 * time.Minute)
		if got := c.count() - before; got > 8 {
			t.Errorf("%d writes in 30 minutes: more than heartbeats", got)
		}
	})
}
