package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/cluster"
)

// state is a state of a Node, and how the Node comes to it and leaves it.
type state struct {
	name     string
	do, undo func(*scene)
	holds    func(*corev1.Node) bool // of the Node quiet, which it leaves with all well
}

func tainted(key string) func(*corev1.Node) bool {
	return cluster.HasTaint(key, corev1.TaintEffectNoSchedule)
}

// states are those of the Node quiet, whose agent is real, and those of the Node
// bare, whose conditions are written as an agent does: nobody waits here until an agent
// is called silent, and the fleet is too small for a brake.
func states() []state {
	full := strings.Replace(quickly, "disk: {period: 500ms, debounce: {", "disk: {period: 500ms, availablePercent: 99.9, debounce: {clearFactor: 1.0001, ", 1)
	memory := func(percent int) func(*scene) { return func(s *scene) { s.host.Memory(percent) } }
	pause := kubectl("annotate", "node", quiet, "taintlet.dev/paused=true")
	resume := kubectl("annotate", "node", quiet, "taintlet.dev/paused-")
	clean := status("test", noConditions)
	return []state{
		{name: "well"},
		{name: "bad memory", do: memory(2), undo: memory(50), holds: tainted(memoryKey)},
		{name: "bad disk", do: func(s *scene) { s.fill(); s.agent.Reconfigure(full) }, undo: func(s *scene) { s.agent.Reconfigure(quickly) }, holds: tainted(corev1.TaintNodeDiskPressure)},
		{name: "bad PIDs", do: func(s *scene) { s.host.Tasks(30000) }, undo: func(s *scene) { s.host.Tasks(100) }, holds: tainted(corev1.TaintNodePIDPressure)},
		{name: "bad network", do: func(s *scene) { s.host.Carrier(false) }, undo: func(s *scene) { s.host.Carrier(true) }, holds: tainted(corev1.TaintNodeNetworkUnavailable)},
		{name: "paused", do: func(s *scene) {
			pause(s)
			s.c.WaitAgentEvent(s.t, quiet, "TaintsPaused", "")
			s.host.Memory(2)
		}, undo: func(s *scene) { memory(50)(s); resume(s) }, holds: cluster.HasCondition("HostMemoryPressure", corev1.ConditionTrue)},
		{name: "contested", do: func(s *scene) {
			// Without another taint nobody can tell that it was kubectl that removed one so soon.
			kubectl("taint", "node", quiet, "dedicated=group:NoSchedule")(s)
			s.host.Memory(2)
			for range 2 {
				cluster.Eventually(s.t, "the taint", func() error { // a watch may tell of the taint before
					if node := s.c.GetNode(s.t, quiet); !tainted(memoryKey)(node) {
						return fmt.Errorf("taints = %v", node.Spec.Taints)
					}
					return nil
				})
				kubectl("taint", "node", quiet, memoryKey+":NoSchedule-")(s)
			}
			s.c.WaitAgentEvent(s.t, quiet, "TaintContested", "")
		}, undo: func(s *scene) { memory(50)(s); kubectl("taint", "node", quiet, "dedicated:NoSchedule-")(s) }, holds: func(n *corev1.Node) bool { return strings.Contains(n.Annotations["taintlet.dev/record"], `"stage"`) }},
		// Nobody has written the Node bare as taintlet until it is braked.
		{name: "silent", do: wrote("test", "HostDiskPressure", "False", "SpaceSufficient", time.Hour), undo: clean},
		{name: "braked", do: wrote("taintlet", "HostMemoryPressure", "Unknown", "FleetBrake", 0), undo: clean},
	}
}

// fill makes the disk of the Node quiet less than empty: it takes a 500th of it.
func (s *scene) fill() {
	s.t.Helper()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(s.host.Root, &fs); err != nil {
		s.t.Fatal(err)
	}
	size := int64(fs.Blocks) * fs.Bsize / 500 //nolint:gosec // the size of a tmpfs
	if err := os.WriteFile(filepath.Join(s.host.Root, "ballast"), make([]byte, size), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// What the check says while a Node is in each state: the lines that are not those of an
// installation without a fault.
func TestCheckInEachState(t *testing.T) {
	cluster.SkipUnlessRequired(t)
	cluster.SkipWithoutMutatingAdmissionPolicy(t)
	s := install(t)
	installed, err := os.ReadFile(filepath.Join("testdata", "installed.txt"))
	if err != nil {
		t.Fatal(err)
	}
	usual := map[string]bool{}
	for line := range strings.Lines(string(installed)) {
		usual[line] = true
	}
	s.allGreen(false)
	var told strings.Builder
	for _, state := range states() {
		if state.do != nil {
			state.do(s)
		}
		if state.holds != nil {
			s.wait(quiet, state.holds)
		}
		text, isWell := s.print(false)
		fmt.Fprintf(&told, "%s: %s\n", state.name, map[bool]string{true: "exit code 0", false: "exit code 3"}[isWell])
		text = regexp.MustCompile(`--tail=20 taintlet-\w+`).ReplaceAllString(text, "--tail=20 taintlet-xxxxx")
		for line := range strings.Lines(strings.ReplaceAll(text, release(), "v1.37.2")) {
			if !usual[line] {
				told.WriteString("  " + line)
			}
		}
		if state.undo != nil {
			state.undo(s)
		}
		s.wait(quiet, func(node *corev1.Node) bool { return len(node.Spec.Taints) == 0 })
		for _, kind := range []corev1.NodeConditionType{"HostMemoryPressure", "HostDiskPressure", "HostPIDPressure", "HostNetworkUnavailable"} {
			s.wait(quiet, cluster.HasCondition(kind, corev1.ConditionFalse))
		}
	}
	golden(t, "states.txt", told.String())
}
