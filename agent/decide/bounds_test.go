package decide_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// seenAll lets every probe take a sample, so that conditions can be reported.
func seenAll(s *sim) {
	for _, c := range names() {
		s.after(time.Second, sample(c, "ok"))
	}
}

// fill leaves that many bytes to all further annotations of the Node.
func fill(s *sim, left int) {
	s.edit(func(n *taints.Node) {
		delete(n.Annotations, "example.com/notes")
		used := len("example.com/notes")
		for key, value := range n.Annotations {
			used += len(key) + len(value)
		}
		n.Annotations["example.com/notes"] = strings.Repeat("x", 256<<10-used-left)
	})
	s.step(decide.Inputs{})
}

// A Node whose annotations leave no room for the record gets its taint all the
// same, and its conditions say so. Others who remove the taint cannot make more
// writes than the budget has. When there is room, the record is written.
func TestTaintWithoutRoomForTheRecord(t *testing.T) {
	s := newSim(config.Default().Policy())
	seenAll(s)
	s.edit(func(*taints.Node) {})
	fill(s, 200) // enough for held, not for the record
	s.after(time.Second, sample(probes.MemoryPressure, "certain"))
	pair := taints.Pair{Key: corev1.TaintNodeMemoryPressure, Effect: taints.NoSchedule}
	says := func(text string) bool {
		c := s.read.Condition("HostMemoryPressure")
		return c != nil && strings.Contains(c.Message, text)
	}
	if !s.read.Has(pair) || s.read.Annotations[taints.RecordAnnotation] != "" {
		t.Fatalf("taints %v, record %q", s.read.Taints, s.read.Annotations[taints.RecordAnnotation])
	}
	if !says("does not fit") {
		t.Errorf("the condition says nothing of it: %+v", s.read.Condition("HostMemoryPressure"))
	}

	before := s.writes
	for range 2 * 3600 {
		s.edit(func(n *taints.Node) { n.Taints = nil })
		s.after(time.Second, sample(probes.MemoryPressure, "bad"))
	}
	if bound := writeBound(s.cfg, 2*time.Hour); s.writes-before > bound || s.writes == before {
		t.Errorf("%d writes in 2 h against somebody who removes the taint every second, bound %d", s.writes-before, bound)
	}

	s = newSim(config.Default().Policy())
	seenAll(s)
	fill(s, 200)
	s.after(time.Second, sample(probes.MemoryPressure, "certain"))
	s.edit(func(n *taints.Node) { delete(n.Annotations, "example.com/notes") })
	s.after(time.Second, sample(probes.MemoryPressure, "bad"))
	s.after(time.Second, sample(probes.MemoryPressure, "bad"))
	if s.read.Annotations[taints.RecordAnnotation] == "" || says("does not fit") {
		t.Errorf("there is room again: record %q, condition %+v", s.read.Annotations[taints.RecordAnnotation], s.read.Condition("HostMemoryPressure"))
	}
}

// Where not even the annotation fits by which a pair is kept, the taint is the
// stand-in, and the pair of the rule again when there is room.
func TestTaintWithoutRoomForAnyAnnotation(t *testing.T) {
	for _, left := range []int{0, 40, 100} {
		s := newSim(config.Default().Policy())
		seenAll(s)
		s.edit(func(*taints.Node) {})
		fill(s, left)
		s.after(time.Second, sample(probes.MemoryPressure, "certain"))
		if !s.read.Has(taints.Pair{Key: "taintlet.dev/memory-pressure", Effect: taints.NoSchedule}) {
			t.Errorf("%d bytes left: taints %v", left, s.read.Taints)
		}
		s.edit(func(n *taints.Node) { delete(n.Annotations, "example.com/notes") })
		s.after(time.Second, sample(probes.MemoryPressure, "bad"))
		want := taints.Pair{Key: corev1.TaintNodeMemoryPressure, Effect: taints.NoSchedule}
		if len(s.read.Taints) != 1 || !s.read.Has(want) {
			t.Errorf("there is room again: taints %v", s.read.Taints)
		}
	}
}

// On a Node with more annotations than the admission policy compares, the agent
// leaves its own as they are, whatever they say: a patch that changed one would be
// refused with its taint.
func TestTaintBesideManyAnnotations(t *testing.T) {
	s := newSim(config.Default().Policy())
	seenAll(s)
	s.after(time.Second, sample(probes.MemoryPressure, "certain"))
	before := maps.Clone(s.read.Annotations)
	if before[taints.RecordAnnotation] == "" || before[taints.HeldAnnotation] == "" {
		t.Fatalf("annotations %v", before)
	}
	s.edit(func(n *taints.Node) {
		for i := range taints.MaxForeignAnnotations + 1 {
			n.Annotations[fmt.Sprint("example.com/", i)] = ""
		}
	})
	s.after(time.Second, sample(probes.MemoryPressure, "bad"))
	if !s.read.Has(taints.Pair{Key: "taintlet.dev/memory-pressure", Effect: taints.NoSchedule}) {
		t.Errorf("taints %v", s.read.Taints)
	}
	for range 3600 {
		s.after(time.Second, sample(probes.MemoryPressure, "ok"))
	}
	if len(s.read.Taints) > 0 {
		t.Errorf("an hour after the last bad sample the taints are %v", s.read.Taints)
	}
	for _, key := range []string{taints.RecordAnnotation, taints.HeldAnnotation} {
		if s.read.Annotations[key] != before[key] {
			t.Errorf("%s is %q, it was %q", key, s.read.Annotations[key], before[key])
		}
	}
}

// A taint without its record is removed like any other, whether the watch or the
// writer was the first to say that it is on the Node.
func TestTaintWithoutRecordIsRemoved(t *testing.T) {
	for _, watchFirst := range []bool{false, true} {
		s := newSim(config.Default().Policy())
		s.watchFirst, s.facts.KeepPolicy = watchFirst, false // a kept pair is taken over from anybody
		seenAll(s)
		fill(s, 200)
		s.after(time.Second, sample(probes.MemoryPressure, "certain"))
		s.after(time.Second, sample(probes.MemoryPressure, "bad"))
		if len(s.read.Taints) != 1 {
			t.Fatalf("watch first %v: taints %v", watchFirst, s.read.Taints)
		}
		for range 3600 {
			s.after(time.Second, sample(probes.MemoryPressure, "ok"))
		}
		if len(s.read.Taints) != 0 {
			t.Errorf("watch first %v: an hour later, taints %v", watchFirst, s.read.Taints)
		}
	}
}

// Whatever others write into our annotations, what is told of it is short.
func TestWhatOthersWroteIsToldInShort(t *testing.T) {
	pairs := make([]string, 900)
	for i := range pairs {
		pairs[i] = fmt.Sprintf(`"k%d:NoSchedule"`, i)
	}
	long := strings.Repeat("x", 200_000)
	for name, annotate := range map[string]func(map[string]string){
		"paused": func(a map[string]string) { a[taints.PausedAnnotation] = long },
		"paused, a list": func(a map[string]string) {
			a[taints.PausedAnnotation] = strings.Repeat("MemoryPressure,", 13_000) + "x"
		},
		"record, a long one": func(a map[string]string) { a[taints.RecordAnnotation] = `{"version":1,"boot":"` + long + `"}` },
		"record, a long pair": func(a map[string]string) {
			a[taints.RecordAnnotation] = `{"version":1,"revision":1,"owned":["` + long[:10_000] + `"]}`
		},
		"record, a long name": func(a map[string]string) {
			a[taints.RecordAnnotation] = `{"version":1,"revision":1,"conditions":{"` + long[:10_000] + `":{"level":"Unknown"}}}`
		},
		"record, a long level": func(a map[string]string) {
			a[taints.RecordAnnotation] = `{"version":1,"revision":1,"conditions":{"MemoryPressure":{"level":"` + long[:10_000] + `"}}}`
		},
		"record, many pairs": func(a map[string]string) {
			a[taints.RecordAnnotation] = `{"version":1,"revision":9,"owned":[` + strings.Join(pairs, ",") + `]}`
		},
	} {
		s := newSim(config.Default().Policy())
		s.after(time.Second, sample(probes.MemoryPressure, "certain"))
		s.edit(func(n *taints.Node) { annotate(n.Annotations) })
		for _, restart := range []bool{false, true} {
			if restart {
				s.restart(false, 0)
			}
			state, d := decide.Step(s.cfg, s.state, decide.Inputs{Node: s.read, Facts: s.facts}, s.now.Add(time.Second))
			for _, n := range d.Notices {
				if len(n.Message) > 600 {
					t.Errorf("%s: a message of %d bytes: %.300s", name, len(n.Message), n.Message)
				}
			}
			if d.Desired != nil {
				if record := d.Desired.Annotations[taints.RecordAnnotation]; len(record) > 4096 {
					t.Errorf("%s: a record of %d bytes", name, len(record))
				}
			}
			s.state = state
		}
	}
}

// A record that is longer than any of ours is refused unread.
func TestLongRecordIsRefused(t *testing.T) {
	for length, refused := range map[int]bool{16 << 10: false, 16<<10 + 1: true, 200_000: true} {
		s := newSim(config.Default().Policy())
		s.edit(func(n *taints.Node) {
			head, tail := `{"version":1,"revision":1,"conditions":{"MemoryPressure":{"level":"Degraded"}},"boot":"`, `"}`
			n.Annotations[taints.RecordAnnotation] = head + strings.Repeat("x", length-len(head)-len(tail)) + tail
		})
		s.restart(false, 0)
		state, d := decide.Step(s.cfg, s.state, decide.Inputs{Node: s.read, Facts: s.facts}, s.now)
		if told := len(d.Notices) > 0 && strings.Contains(d.Notices[0].Message, "more than 16384"); told != refused {
			t.Errorf("%d bytes: %v", length, d.Notices)
		}
		if read := state.Level(probes.MemoryPressure) == probes.Degraded; read == refused {
			t.Errorf("%d bytes: level %s", length, state.Level(probes.MemoryPressure))
		}
	}
}

// A record can say that this Node evicts. Only a taint that is there, or that
// the Node's own evidence asks for, needs a slot.
func TestForgedEvictionNeedsNoSlot(t *testing.T) {
	s := newSim(withCritical(config.Default().Policy()))
	s.after(time.Second, sample(probes.MemoryPressure, "certain"))
	s.edit(func(n *taints.Node) {
		forge(n, "conditions", `{"MemoryPressure":{"level":"Critical"}}`)
		forge(n, "owned", `["node.kubernetes.io/memory-pressure:NoSchedule","node.kubernetes.io/memory-pressure:NoExecute"]`)
	})
	s.restart(false, 0)
	for range 5 { // the Node is seen before the first sample is taken
		var d decide.Decision
		s.now = s.now.Add(time.Second)
		in := decide.Inputs{Node: s.read, Facts: s.facts, Slot: decide.SlotUnknown}
		if s.state, d = decide.Step(s.cfg, s.state, in, s.now); d.Slot != decide.SlotNotNeeded {
			t.Errorf("a forged record requests the slot: %d", d.Slot)
		}
	}
}

// A record of the longest kind that is read names a thousand pairs that no rule
// asks for. It costs once, not with every step.
func TestForgedPairsCostOnce(t *testing.T) {
	perStep := func(pairs int) float64 {
		cfg := config.Default().Policy()
		cfg.WriteBudget.Burst = 1
		s := newSim(cfg)
		s.after(time.Second, sample(probes.MemoryPressure, "certain"))
		for range 2 { // the repair of the first takes the only token
			s.edit(func(n *taints.Node) { n.Taints = nil })
			s.after(time.Second)
		}
		named := make([]string, pairs)
		for i := range named {
			named[i] = fmt.Sprintf(`"k%d:A"`, i)
		}
		s.edit(func(n *taints.Node) {
			forge(n, "owned", "["+strings.Join(named, ",")+"]")
			forge(n, "revision", "99")
		})
		s.after(time.Second)
		in := decide.Inputs{Node: s.read, Facts: s.facts, Slot: decide.SlotHeld}
		return testing.AllocsPerRun(10, func() { decide.Step(s.cfg, s.state, in, s.now.Add(time.Second)) })
	}
	if few, many := perStep(1), perStep(1300); many > 5*few {
		t.Errorf("%g allocations per step with 1300 forged pairs, %g with one", many, few)
	}
}
