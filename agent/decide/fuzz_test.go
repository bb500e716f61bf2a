package decide_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// FuzzNode: whatever taints and annotations others put on the Node, the agent neither panics
// nor changes a taint that no rule of its own can ask for, and it sets its taint.
func FuzzNode(f *testing.F) {
	var thousands strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&thousands, "example.com/k%d=v:NoSchedule\n", i)
	}
	for _, text := range []string{
		"", thousands.String(), "node.kubernetes.io/memory-pressure:NoSchedule\nnode.kubernetes.io/memory-pressure:NoExecute\nnode.kubernetes.io/memory-pressure:NoSchedule",
		"taintlet.dev/memory-pressure=x:PreferNoSchedule\n=:\n:NoExecute\na", "a=b=c:d:e\n\x00:NoSchedule\ndedicated:NoSchedule\ndedicated:NoSchedule",
	} {
		f.Add(text, "", "")
		f.Add(text, "memory-pressure,,\x00", "until 2099")
	}
	f.Fuzz(surviveNode)
}

func surviveNode(t *testing.T, text, held, paused string) {
	var others []taints.Taint
	for line := range strings.Lines(text) {
		pair, effect, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		key, value, _ := strings.Cut(pair, "=")
		others = append(others, taints.Taint{Key: key, Value: value, Effect: taints.Effect(effect)})
	}
	policy := withCritical(config.Default().Policy())
	s := newSim(policy)
	s.edit(func(n *taints.Node) {
		n.Taints = others
		n.Annotations[taints.HeldAnnotation] = held
		if paused != "" {
			n.Annotations[taints.PausedAnnotation] = paused
		}
	})
	s.restart(false, 0)
	s.mustKeep(t, notOurs(policy, others))
	for i := range 40 {
		s.after(5*time.Second, sample(names()[i%4], "certain"))
	}
	if paused == "" && s.state.Level(probes.MemoryPressure) == probes.OK {
		t.Error("the condition is not bad")
	}
}
