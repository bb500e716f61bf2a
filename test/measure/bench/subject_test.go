package bench

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/taintlet/taintlet/agent/config"
	corev1 "k8s.io/api/core/v1"
)

// load takes something of the host, in two steps, and gives it back.
type load interface {
	// approach takes what can be taken without crossing a threshold.
	approach(ctx context.Context) error
	// cross takes more, far beyond both thresholds, in a moment.
	cross(ctx context.Context) (crossing, error)
	// release gives all back, if there is any.
	release() error
}

// subject is one thing that is measured.
type subject struct {
	name       string // on the command line
	title      string
	condition  corev1.NodeConditionType // of the kubelet
	controller string                   // key of the taint for it
	own        string                   // key of the agent's taint
	load       func(*stage) load
}

func subjects() []subject {
	memory := subject{
		name: "memory", title: "memory", condition: corev1.NodeMemoryPressure,
		controller: corev1.TaintNodeMemoryPressure, own: "bench.taintlet.dev/memory-pressure",
		load: func(s *stage) load {
			return &childLoad{stage: s, name: takeMemory, numbers: []uint64{s.memory.kubelet, s.memory.agent, s.memory.gap}}
		},
	}
	pid := subject{
		name: "pid", title: "PIDs", condition: corev1.NodePIDPressure,
		controller: corev1.TaintNodePIDPressure, own: "bench.taintlet.dev/pid-pressure",
		load: func(s *stage) load {
			return &childLoad{stage: s, name: takeTasks, numbers: []uint64{s.tasks.limit - s.tasks.leastFit}}
		},
	}
	space := subject{
		name: "disk", title: "disk", condition: corev1.NodeDiskPressure,
		controller: corev1.TaintNodeDiskPressure, own: "bench.taintlet.dev/disk-pressure",
		load: func(s *stage) load { return &disk{stage: s} },
	}
	return []subject{memory, pid, space}
}

func subjectNames() []string {
	var names []string
	for _, s := range subjects() {
		names = append(names, s.name)
	}
	return names
}

// configuration is the agent's. Its thresholds are the kubelet's. Recovery is
// as quick as the kubelet's is made, every time, so that no run depends on the
// one before. All that decides how soon a taint is set is the default.
func (s *stage) configuration() string {
	const debounce = "clearAfter: 2s, maxClearAfter: 2s"
	taken := s.tasks.limit - s.tasks.leastFit
	return fmt.Sprintf(`apiVersion: taintlet.dev/v1alpha1
kind: TaintletConfiguration
memory:
  availablePercent: 0
  availableBytes: %d
  debounce: {clearFactor: 1.01, %[2]s}
disk:
  paths: [%[3]s]
  availablePercent: %[4]d
  debounce: {clearFactor: 1.05, %[2]s}
pid:
  usedPercent: %[5]s
  debounce: {clearFactor: %[6]s, %[2]s}
writeBudget: {interval: 1s}
rules:
- {condition: MemoryPressure, level: Degraded, taint: {key: bench.taintlet.dev/memory-pressure, effect: NoSchedule}}
- {condition: DiskPressure, level: Degraded, taint: {key: bench.taintlet.dev/disk-pressure, effect: NoSchedule}}
- {condition: PIDPressure, level: Degraded, taint: {key: bench.taintlet.dev/pid-pressure, effect: NoSchedule}}
`, s.memory.agent, debounce, diskDir, diskPercent,
		decimal(100*float64(taken)/float64(s.tasks.limit)),
		// Enough again when a quarter of the margin is free again.
		decimal(1+float64(tasksMargin)/4/float64(s.tasks.leastFit)))
}

func decimal(number float64) string { return strconv.FormatFloat(number, 'f', 6, 64) }

func TestTheAgentAcceptsItsConfiguration(t *testing.T) {
	s := &stage{
		memory: memoryPlan{agent: 20 << 30},
		tasks:  tasksPlan{limit: 32768, leastFit: 31639},
	}
	if _, err := config.HostSchema().Decode([]byte(s.configuration())); err != nil {
		t.Error(err)
	}
}
