package decide_test

import (
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// FuzzHeld checks that a forged held annotation makes the agent keep no taint of others and
// remove none, and that it is replaced by one that lists the agent's own keys.
func FuzzHeld(f *testing.F) {
	for _, text := range []string{
		"dedicated", "node.kubernetes.io/memory-pressure,dedicated", ",,,", "a, b", "node.kubernetes.io/disk-pressure", strings.Repeat("a,", 5000), "\x00", "\xff,gpu",
	} {
		f.Add(text)
	}
	f.Fuzz(surviveHeld)
}

func surviveHeld(t *testing.T, text string) {
	policy := withCritical(config.Default().Policy())
	s := newSim(policy)
	others := []taints.Taint{{Key: "dedicated", Effect: taints.NoSchedule}, {Key: "gpu", Effect: taints.NoExecute}}
	for word := range strings.SplitSeq(text, ",") {
		if len(others) < 50 {
			others = append(others, taints.Taint{Key: word, Value: "theirs", Effect: taints.NoSchedule})
		}
	}
	s.edit(func(n *taints.Node) {
		n.Taints = others
		n.Annotations[taints.HeldAnnotation] = text
	})
	s.restart(false, 0)
	s.mustKeep(t, notOurs(policy, others))
	for i := range 40 {
		s.after(5*time.Second, sample(names()[i%4], "certain"))
	}
	own := map[string]bool{"": true}
	for _, condition := range policy.Conditions {
		own[condition.TaintKey] = true
	}
	for _, key := range taints.HeldKeys(s.read.Node) {
		if !own[key] {
			t.Errorf("the held annotation is %q", s.read.Annotations[taints.HeldAnnotation])
		}
	}
}

// FuzzPaused checks that whatever stands in the annotation taintlet.dev/paused, either no
// taint is added or all the agent's taints are as ever, and that none of others changes.
func FuzzPaused(f *testing.F) {
	for _, text := range []string{"", "true", "false", "True", "MemoryPressure", " MemoryPressure , DiskPressure", "MemoryPressure,", "all", "\x00", strings.Repeat("MemoryPressure,", 1000)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		policy := config.Default().Policy()
		s := newSim(policy)
		s.edit(func(n *taints.Node) { n.Annotations[taints.PausedAnnotation] = text })
		for i := range 8 {
			s.after(5*time.Second, sample(names()[i%4], "certain"))
		}
		held := 0
		for _, name := range names() {
			node := s.read.Node
			switch by := decide.PausedBy(node, policy, name); {
			case by != "":
				held++
			case s.state.Level(name) < probes.Degraded:
				t.Errorf("%q does not pause %s, which is %s", text, name, s.state.Level(name))
			}
		}
		if got, want := len(s.read.Taints), len(names())-held; got != want {
			t.Errorf("%q holds %d conditions, and %d taints are set", text, held, got)
		}
	})
}
