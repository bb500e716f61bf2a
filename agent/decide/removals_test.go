package decide_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// remove lets a field manager remove all taints, and the decider notice that.
func (s *sim) remove(manager string) {
	s.edit(func(n *taints.Node) { n.Taints, n.LastWriter = nil, manager })
	s.after(time.Second, sample(probes.MemoryPressure, "bad"))
}

// heartbeat has the conditions written.
func (s *sim) heartbeat() {
	s.now = s.now.Add(time.Minute)
	s.step(decide.Inputs{Refresh: true, Observations: []probes.Observation{sample(probes.MemoryPressure, "bad")}})
}

// told is what the Node condition of memory says.
func (s *sim) told() string {
	return s.read.Condition(decide.ConditionType(probes.MemoryPressure)).Message
}

// Who removed a taint, when and how often is on the Node from the first removal on, in
// the record and in the condition, also after a restart, and for a day.
func TestRemovalsAreTold(t *testing.T) {
	s := newSim(config.Default().Policy())
	var counts []int
	s.onNotice = func(n decide.Notice) {
		if n.Kind == decide.TaintLost {
			counts = append(counts, n.Count)
		}
	}
	seenAll(s)
	s.after(time.Second, sample(probes.MemoryPressure, "certain"))
	s.after(time.Second, sample(probes.MemoryPressure, "bad"))
	if got := s.memory(t); got.Removals != 0 || strings.Contains(s.told(), "removed") {
		t.Errorf("before any removal: %+v %s", got, s.told())
	}
	expect := func(when string, count int, by string, at time.Time, text string) {
		t.Helper()
		if got := s.memory(t); got.Removals != count || got.RemovedBy != by || !got.RemovedAt.Equal(at) {
			t.Errorf("%s: %d removals, by %q at %s; want %d by %q at %s", when, got.Removals, got.RemovedBy, got.RemovedAt, count, by, at)
		}
		if !strings.Contains(s.told(), text) {
			t.Errorf("%s: the condition says %q, want %q", when, s.told(), text)
		}
	}

	s.remove("kubectl-taint")
	first := s.now
	s.heartbeat()
	expect("removed once", 1, "kubectl-taint", first, "; taint removed by field manager kubectl-taint at "+first.UTC().Format("15:04 UTC"))

	s.after(time.Minute, sample(probes.MemoryPressure, "bad"))
	s.remove("")
	second := s.now
	s.heartbeat()
	expect("removed twice", 2, "", second, "; taint removed 2 times, last by an unknown client at "+second.UTC().Format("15:04 UTC"))
	if len(counts) != 2 || counts[0] != 1 || counts[1] != 2 {
		t.Errorf("the notices count %v", counts)
	}

	s.restart(false, 0)
	seenAll(s)
	s.after(time.Second, sample(probes.MemoryPressure, "bad"))
	s.heartbeat()
	expect("after a restart", 2, "", second, "taint removed 2 times")

	s.after(24*time.Hour, sample(probes.MemoryPressure, "bad"))
	s.heartbeat()
	if strings.Contains(s.told(), "removed") {
		t.Errorf("after a day the condition says %s", s.told())
	}
	s.remove("kubectl-edit")
	expect("the first removal after a day", 1, "kubectl-edit", s.now, "")
}

// A forged record tells at most so much.
func TestForgedRemovals(t *testing.T) {
	s := newSim(config.Default().Policy())
	seenAll(s)
	s.after(time.Second, sample(probes.MemoryPressure, "certain"))
	s.edit(func(n *taints.Node) {
		n.Annotations[taints.RecordAnnotation] = strings.Replace(n.Annotations[taints.RecordAnnotation], `"level":"Degraded"`,
			`"level":"Degraded","removals":9000000000,"removedBy":"`+strings.Repeat("x", 4000)+`","removedAt":"9999-01-01T00:00:00Z"`, 1)
	})
	s.restart(false, 0)
	seenAll(s)
	s.after(time.Second, sample(probes.MemoryPressure, "bad"))
	s.after(time.Minute, sample(probes.MemoryPressure, "bad"))
	if got := s.memory(t); got.Removals > 1_000_000 || len(got.RemovedBy) > 210 || got.RemovedAt.After(s.now) {
		t.Errorf("%d removals by %d bytes at %s", got.Removals, len(got.RemovedBy), got.RemovedAt)
	}
	if record := s.read.Annotations[taints.RecordAnnotation]; strings.Contains(record, strings.Repeat("x", 300)) {
		t.Errorf("the record passes on %d bytes", len(record))
	}
}

// What holds a condition back, and why it is not OK, is what its Node condition says.
func TestHeldAndReason(t *testing.T) {
	s := newSim(config.Default().Policy())
	seenAll(s)
	expect := func(when string, by describe.Hold, from, reason string) {
		t.Helper()
		if gotBy, gotFrom := s.state.Held(probes.MemoryPressure); gotBy != by || gotFrom != from {
			t.Errorf("%s: held by %q from %q, want %q from %q", when, gotBy, gotFrom, by, from)
		}
		if got := s.state.Reason(probes.MemoryPressure); got != reason {
			t.Errorf("%s: the reason %q, want %q", when, got, reason)
		}
	}
	expect("OK", "", "", "")
	s.edit(func(n *taints.Node) { n.Annotations[taints.PausedAnnotation] = "true" })
	s.after(time.Second, sample(probes.MemoryPressure, "ok"))
	expect("paused and OK", "", "", "")
	s.after(time.Second, sample(probes.MemoryPressure, "certain"))
	s.after(time.Minute, sample(probes.MemoryPressure, "bad"))
	bad := s.read.Condition(decide.ConditionType(probes.MemoryPressure)).Reason
	expect("paused and bad", describe.HeldPaused, decide.FromTaint, bad)
	s.after(time.Second, sample(probes.DiskPressure, "unknown"))
	if got := s.state.Reason(probes.DiskPressure); got == "" {
		t.Error("no reason of a condition that cannot be told")
	}
}

// A section may be dropped in the step that shows a removal of its taint, and its probe may have
// taken a sample just before. The removal is told, and nothing else follows.
func TestADroppedSection(t *testing.T) {
	w := newWorld()
	if err := w.events("config reports GPUHealthy; config also GPUHealthy Degraded example.com/gpu:NoSchedule; GPUHealthy certain XID13"); err != nil {
		t.Fatal(err)
	}
	if !w.node.Has(taints.Pair{Key: "example.com/gpu", Effect: taints.NoSchedule}) {
		t.Fatalf("no taint to remove: %v", w.node.Taints)
	}
	before := len(w.happened)
	w.cfg = config.Default()
	w.policy = w.cfg.Policy()
	if err := w.events("others remove example.com/gpu:NoSchedule"); err != nil {
		t.Fatal(err)
	}
	w.step(decide.Inputs{Observations: []probes.Observation{sample("GPUHealthy", "certain XID13")}})
	if got := w.happened[before:]; !slices.Equal(got, []string{"TaintLost", "write record"}) || len(w.node.Taints) > 0 {
		t.Errorf("%q followed, and the taints %v", got, w.node.Taints)
	}
	if left, clears := w.state.TimeToClear(w.policy, "GPUHealthy", w.clock()); clears {
		t.Errorf("it clears in %s", left)
	}
}
