package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/fixtures"
)

// A gauge that stays at 1 after recovery is an alarm that nobody believes the
// next time: kubernetes/node-problem-detector#474.
func TestGaugesGoBackWithRecovery(t *testing.T) {
	const (
		degraded = `taintlet_condition_level{condition="DiskPressure",level="Degraded"}`
		severity = `taintlet_condition_severity{condition="DiskPressure"}`
		wanted   = `taintlet_taint_desired{condition="DiskPressure",effect="NoSchedule",key="taintlet.dev/disk-pressure",via="stand-in"}`
	)
	cfg, m, now := config.Default(), New("test"), time.Unix(1e9, 0)
	policy := cfg.Policy()
	state := decide.New(decide.Boot{ID: "boot", At: now}, "test")
	node := decide.Read(&taints.Node{Name: "host", UID: "uid", ResourceVersion: "1"})
	sample := func(level probes.Level, severity int) {
		o := probes.Observation{Condition: probes.DiskPressure, Level: level, Severity: severity, Certain: level > probes.OK, Reason: "Seen", Message: "seen"}
		now = now.Add(time.Second)
		state, _ = decide.Step(policy, state, decide.Inputs{Node: node, Facts: taints.Facts{StandInPrefix: cfg.KeyPrefix}, Observations: []probes.Observation{o}}, now)
		m.Sampled(o, nil)
		m.Decided(policy, &state, fleet.Status{}, now)
	}
	m.Configured(cfg)
	sample(probes.Degraded, 80)
	if sick := gauges(t, m); sick[degraded] != 1 || sick[severity] != 80 || sick[wanted] != 1 {
		t.Fatalf("read-only: %v", sick)
	}
	for range int(fixtures.Section[*config.Disk](cfg).Debounce.ClearAfter.Duration/time.Second) + 1 {
		sample(probes.OK, 0)
	}
	well := gauges(t, m)
	if _, there := well[wanted]; there || well[degraded] != 0 || well[severity] != 0 {
		t.Errorf("well again: %v", well)
	}
}

// A condition that a configuration drops has no series, and all of them when a later one
// has it again.
func TestForgottenConditionComesBack(t *testing.T) {
	cfg, m, now := config.Default(), New("test"), time.Unix(1e9, 0)
	policy := cfg.Policy()
	state := decide.New(decide.Boot{ID: "boot", At: now}, "test")
	show := func() (shown int) {
		m.Configured(cfg)
		o := probes.Observation{Condition: probes.PIDPressure, Level: probes.OK}
		m.Sampled(o, []probes.Measure{{Name: "free_tasks", Unit: probes.Items, Value: 5, Degraded: 3}})
		m.Decided(policy, &state, fleet.Status{}, now)
		return seriesOf(t, m, probes.PIDPressure)
	}
	before := show()
	m.Forget(probes.PIDPressure)
	if left := seriesOf(t, m, probes.PIDPressure); left != 0 || before == 0 {
		t.Errorf("%d of %d series are left", left, before)
	}
	if after := show(); after != before {
		t.Errorf("%d series came back of %d", after, before)
	}
}

// seriesOf counts the series of a condition.
func seriesOf(t *testing.T, m *Metrics, c probes.Condition) (count int) {
	t.Helper()
	for _, family := range gather(t, m) {
		for _, metric := range family.GetMetric() {
			for _, l := range metric.GetLabel() {
				if l.GetName() == "condition" && l.GetValue() == string(c) {
					count++
				}
			}
		}
	}
	return count
}

// gauges returns the metrics' values by what Prometheus would call them.
func gauges(t *testing.T, m *Metrics) map[string]float64 {
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

// A removal is seen by increase(): a series begins at 0, before its first event. Removals by field
// managers that are not known are counted together.
func TestRemovalsBeginAtZero(t *testing.T) {
	cfg, m := config.Default(), New("test")
	m.Configured(cfg)
	lost := func(manager string) (value float64, found bool) {
		for _, family := range gather(t, m) {
			for _, metric := range family.GetMetric() {
				labels := metric.GetLabel()
				if family.GetName() == "taintlet_taints_lost_total" && labels[0].GetValue() == "PIDPressure" && labels[1].GetValue() == manager {
					return metric.GetCounter().GetValue(), true
				}
			}
		}
		return 0, false
	}
	for _, manager := range append(knownManagers(), other) {
		if value, found := lost(manager); value != 0 || !found {
			t.Errorf("removals by %q begin at %v (%t)", manager, value, found)
		}
	}
	for _, manager := range []string{"kubectl-taint", "fixer", "fixer"} {
		m.Noticed(decide.Notice{Kind: decide.TaintLost, Condition: probes.PIDPressure, By: manager})
	}
	for manager, want := range map[string]float64{"kubectl-taint": 1, "fixer": 0, other: 2} {
		if got, _ := lost(manager); got != want {
			t.Errorf("%v removals by %q, want %v", got, manager, want)
		}
	}
}

// What holds a condition back and its reason are one series each, and gone with recovery.
func TestHeldAndReasonAreShown(t *testing.T) {
	cfg, m, now := config.Default(), New("test"), time.Unix(1e9, 0)
	policy := cfg.Policy()
	state := decide.New(decide.Boot{ID: "boot", At: now}, "test")
	m.Configured(cfg)
	paused := map[string]string{taints.PausedAnnotation: "PIDPressure"}
	step := func(annotations map[string]string, level probes.Level, reason string) map[string]float64 {
		node := decide.Read(&taints.Node{Name: "host", UID: "uid", ResourceVersion: "1", Annotations: annotations})
		var all []probes.Observation
		for _, c := range cfg.Names() {
			all = append(all, probes.Observation{Condition: c, Level: probes.OK, Reason: "Fine"})
			if c == probes.PIDPressure {
				all[len(all)-1] = probes.Observation{Condition: c, Level: level, Certain: level > probes.OK, Reason: reason}
			}
		}
		now = now.Add(15 * time.Second)
		state, _ = decide.Step(policy, state, decide.Inputs{Node: node, Facts: taints.Facts{StandInPrefix: cfg.KeyPrefix}, Observations: all, Written: true, Refresh: true}, now)
		m.Decided(policy, &state, fleet.Status{}, now)
		shown := map[string]float64{}
		for name, value := range gauges(t, m) {
			if strings.HasPrefix(name, "taintlet_held{") || strings.HasPrefix(name, "taintlet_condition_reason{") {
				shown[name] = value
			}
		}
		return shown
	}
	if got := step(paused, probes.OK, "Fine"); len(got) != 0 {
		t.Errorf("OK and paused: %v", got)
	}
	const held, few = `taintlet_held{by="Paused",condition="PIDPressure",what="taint"}`, `taintlet_condition_reason{condition="PIDPressure",reason="FewTasks"}`
	if got := step(paused, probes.Degraded, "FewTasks"); len(got) != 2 || got[held] != 1 || got[few] != 1 {
		t.Errorf("bad and paused: %v", got)
	}
	const other = `taintlet_condition_reason{condition="PIDPressure",reason="Other"}`
	if got := step(paused, probes.Degraded, "Other"); len(got) != 2 || got[other] != 1 {
		t.Errorf("bad for another reason: %v", got)
	}
	for range 20 {
		step(nil, probes.OK, "Fine")
	}
	if got := step(nil, probes.OK, "Fine"); len(got) != 0 {
		t.Errorf("well again: %v", got)
	}
}
