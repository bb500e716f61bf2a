package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/pace"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// A gauge that stays at 1 after recovery is an alarm that nobody believes the
// next time: kubernetes/node-problem-detector#474.
func TestGaugesGoBackWithRecovery(t *testing.T) {
	const (
		degraded = `taintlet_condition_level{condition="DiskPressure",level="Degraded"}`
		severity = `taintlet_condition_severity{condition="DiskPressure"}`
		wanted   = `taintlet_taint_desired{condition="DiskPressure",effect="NoSchedule",key="node.kubernetes.io/disk-pressure",via="direct"}`
	)
	cfg, m, now := config.Default(), newMetrics("test"), time.Unix(1e9, 0)
	policy := cfg.Policy()
	state := decide.New(decide.Boot{ID: "boot", At: now}, "test", now)
	node := decide.Read(&taints.Node{Name: "host", UID: "uid", ResourceVersion: "1"})
	sample := func(level probes.Level, severity int) {
		o := probes.Observation{Condition: probes.DiskPressure, Level: level, Severity: severity, Certain: level > probes.OK, Reason: "Seen", Message: "seen"}
		now = now.Add(time.Second)
		state, _ = decide.Step(policy, state, decide.Inputs{Node: node, Facts: taints.Facts{StandInPrefix: cfg.StandInPrefix}, Observations: []probes.Observation{o}}, now)
		m.samples.observe(o)
		m.state.show(policy, &state, now)
	}
	sample(probes.Degraded, 80)
	if sick := gauges(t, m); sick[degraded] != 1 || sick[severity] != 80 || sick[wanted] != 1 {
		t.Fatalf("read-only: %v", sick)
	}
	for range int(config.Get[*config.Disk](cfg).Debounce.ClearAfter.Duration/time.Second) + 1 {
		sample(probes.OK, 0)
	}
	well := gauges(t, m)
	if _, there := well[wanted]; there || well[degraded] != 0 || well[severity] != 0 {
		t.Errorf("well again: %v", well)
	}
}

// gauges returns the metrics' values by what Prometheus would call them.
func gauges(t *testing.T, m *metrics) map[string]float64 {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := ""
			for _, label := range metric.GetLabel() {
				labels += fmt.Sprintf(",%s=%q", label.GetName(), label.GetValue())
			}
			if metric.Gauge != nil {
				values[family.GetName()+"{"+strings.TrimPrefix(labels, ",")+"}"] = metric.GetGauge().GetValue()
			}
		}
	}
	return values
}

// A thousand agents that start in the same moment do not write in the same
// moment, neither their first heartbeats nor their tries after a refusal:
// kubernetes/node-problem-detector#662.
func TestAgentsDoNotBeatInStep(t *testing.T) {
	for name, c := range map[string]struct {
		next   func() time.Duration
		middle time.Duration
		spread float64 // of the middle, to each side
	}{
		"heartbeat":  {func() time.Duration { return pace.Jittered(5 * time.Minute) }, 5 * time.Minute, 0.1},
		"try again":  {func() time.Duration { r := pace.NewRetry(); return r.After(errors.New("refused"), false) }, 1250 * time.Millisecond, 0.2},
		"in a hurry": {func() time.Duration { r := pace.NewRetry(); return r.After(errors.New("refused"), true) }, 625 * time.Millisecond, 0.2},
	} {
		t.Run(name, func(t *testing.T) {
			var waits []time.Duration
			for range 1000 {
				waits = append(waits, c.next())
			}
			slices.Sort(waits)
			side := time.Duration(float64(c.middle) * c.spread)
			if waits[0] < c.middle-side || waits[999] > c.middle+side {
				t.Errorf("waits from %s to %s, want %s ± %s", waits[0], waits[999], c.middle, side)
			}
			// Evenly spread, a tenth of the agents wait in each tenth of the time.
			for i := range 10 {
				from := c.middle - side + time.Duration(i)*side/5
				first, _ := slices.BinarySearch(waits, from)
				last, _ := slices.BinarySearch(waits, from+side/5)
				if last-first < 50 || last-first > 150 {
					t.Errorf("%d of 1000 agents write between %s and %s", last-first, from, from+side/5)
				}
			}
		})
	}
}
