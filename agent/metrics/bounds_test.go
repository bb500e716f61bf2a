package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/taints"
)

// hostileTexts are what somebody may call a file system, a reason, a Node or a
// field manager who wants to hurt Prometheus.
func hostileTexts(n int) []string {
	texts := make([]string, n)
	for i := range texts {
		switch i % 4 {
		case 0:
			texts[i] = fmt.Sprintf("%d%s", i, strings.Repeat("x", 5000))
		case 1:
			texts[i] = fmt.Sprintf("%d\xff\xfe\x00", i)
		case 2:
			texts[i] = fmt.Sprintf("%d\"}\n# HELP taintlet_active\n", i)
		default:
			texts[i] = fmt.Sprintf("%s%d", strings.Repeat("é", 63)+"x", i)
		}
	}
	return texts
}

// fill makes the metrics show all that they can show, in hostile words.
func fill(t *testing.T, m *Metrics, texts []string) {
	t.Helper()
	cfg, now := config.Default(), time.Unix(1e9, 0)
	m.Configured(cfg)
	policy := cfg.Policy()
	state := decide.New(decide.Boot{ID: "boot", At: now}, texts[0], now)
	node := decide.Read(&taints.Node{Name: texts[0], UID: "uid", ResourceVersion: "1", Annotations: map[string]string{taints.PausedAnnotation: "PIDPressure"}})
	shares := map[probes.Condition]decide.Share{}
	var measures []probes.Measure
	for i, text := range texts {
		c := cfg.Names()[i%4]
		o := probes.Observation{Condition: c, Level: probes.Level(i / 4 % 4), Reason: text, Message: text, Certain: true}
		o.Culprit = probes.Culprit{Kind: "pod", Name: text, Command: text, Took: 1}
		if o.Condition == probes.PIDPressure {
			o.Culprit.Unit = probes.Items
		}
		m.samples.count(o, time.Second)
		m.samples.show(o)
		m.culprit.show(o)
		m.samples.showWakeMode(c, "psi trigger")
		m.Noticed(decide.Notice{Kind: decide.TaintLost, Condition: c, By: text, Message: text})
		m.reaction.follow(o, &state, cfg, now)
		state, _ = decide.Step(policy, state, decide.Inputs{Node: node, Facts: taints.Facts{StandInPrefix: cfg.StandInPrefix}, Observations: []probes.Observation{o}}, now)
		m.state.show(policy, &state, now)
		m.reaction.written(&taints.Node{Taints: []taints.Taint{{Key: corev1.TaintNodeMemoryPressure, Effect: "NoSchedule"}}}, &state, now)
		shares[probes.Condition(text)] = decide.Share{Asked: 1, Bad: 1}
		m.fleet.show(fleet.Status{Unread: map[string]bool{"agents": true}}, shares, cfg)
		m.NetworkIs(map[verdict.Class]bool{verdict.DNS: true, verdict.Class(text): true})
		measures = append(measures, probes.Measure{Name: "available", Path: text, Unit: probes.Unit(i % 4), Value: 1, Degraded: 1, Critical: 1, Clear: 1})
		m.inputs.show(c, measures)
		m.Wrote(nil, nil, &state, now)
	}
}

// gather returns what Prometheus would be served of taintlet's own.
func gather(t *testing.T, m *Metrics) (own []*dto.MetricFamily) {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), prefix) {
			own = append(own, family)
		}
	}
	return own
}

// Nothing that others name makes time series without bound, or breaks a scrape.
func TestLabelsAreBounded(t *testing.T) {
	m := New("test")
	fill(t, m, hostileTexts(2000))
	bounds := map[string]int{ // all others: 4 conditions with 5 series each
		"taintlet_probe_failures_total": 4 * (1 + len(failureReasons())),
		"taintlet_taints_lost_total":    4 * (maxManagers + 1),
	}
	for _, unit := range []string{"bytes", "seconds", "ratio", "items"} {
		bounds["taintlet_input_"+unit] = 4 * maxInputs
		bounds["taintlet_input_threshold_"+unit] = 3 * 4 * maxInputs
	}
	for _, family := range gather(t, m) {
		bound, special := bounds[family.GetName()]
		if !special {
			bound = 20
		}
		if n := len(family.GetMetric()); n > bound {
			t.Errorf("%s has %d series, more than %d", family.GetName(), n, bound)
		}
		for _, metric := range family.GetMetric() {
			for _, l := range metric.GetLabel() {
				if len(l.GetValue()) > maxLabel+len("…") || !utf8.ValidString(l.GetValue()) {
					t.Errorf("%s has the label %s=%.20q… of %d bytes", family.GetName(), l.GetName(), l.GetValue(), len(l.GetValue()))
				}
			}
		}
	}
}

// A reason that no page explains is "other": a label has only known words.
func TestFailuresByReason(t *testing.T) {
	m := New("test")
	for _, reason := range []string{"MeminfoGarbled", "MeminfoGarbled", "Made\xffUp"} {
		m.samples.count(probes.Observation{Condition: probes.MemoryPressure, Reason: reason}, 0)
	}
	found := map[string]float64{}
	for _, family := range gather(t, m) {
		if family.GetName() == "taintlet_probe_failures_total" {
			for _, metric := range family.GetMetric() {
				found[metric.GetLabel()[1].GetValue()] = metric.GetCounter().GetValue()
			}
		}
	}
	if len(found) != 2 || found["MeminfoGarbled"] != 2 || found["other"] != 1 {
		t.Errorf("failures: %v", found)
	}
}

// Names, types and help texts are as Prometheus asks for.
func TestMetricsAreLinted(t *testing.T) {
	m := New("test")
	fill(t, m, hostileTexts(200))
	families := gather(t, m)
	if len(families) != len(m.own) {
		t.Errorf("%d of %d metrics have a series", len(families), len(m.own))
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

// What the newest sample does not show is gone, with its thresholds.
func TestInputsVanish(t *testing.T) {
	m := New("test")
	both := []probes.Measure{
		{Name: "available", Path: "/", Unit: probes.Bytes, Value: 5, Degraded: 3, Clear: 4},
		{Name: "no_answer", Path: "/data", Unit: probes.Seconds, Value: 7, Degraded: 30},
	}
	m.inputs.show(probes.DiskPressure, both)
	m.inputs.show(probes.MemoryPressure, both)
	m.inputs.show(probes.DiskPressure, both[:1])
	both[0].Clear = 0
	m.inputs.show(probes.MemoryPressure, both)
	both[1].Degraded = 0 // goes, and comes back
	m.inputs.show(probes.MemoryPressure, both)
	both[1].Degraded = 30
	m.inputs.show(probes.MemoryPressure, both[:1]) // the input itself, too
	m.inputs.show(probes.MemoryPressure, both)
	got := gauges(t, m)
	want := map[string]float64{
		`taintlet_input_bytes{condition="DiskPressure",input="available",path="/"}`:                                 5,
		`taintlet_input_threshold_bytes{condition="DiskPressure",input="available",path="/",to="Degraded"}`:         3,
		`taintlet_input_threshold_bytes{condition="DiskPressure",input="available",path="/",to="OK"}`:               4,
		`taintlet_input_bytes{condition="MemoryPressure",input="available",path="/"}`:                               5,
		`taintlet_input_threshold_bytes{condition="MemoryPressure",input="available",path="/",to="Degraded"}`:       3,
		`taintlet_input_seconds{condition="MemoryPressure",input="no_answer",path="/data"}`:                         7,
		`taintlet_input_threshold_seconds{condition="MemoryPressure",input="no_answer",path="/data",to="Degraded"}`: 30,
	}
	for series, value := range want {
		if got[series] != value {
			t.Errorf("%s is %v, want %v", series, got[series], value)
		}
	}
	for series := range got {
		if _, wanted := want[series]; !wanted && strings.HasPrefix(series, "taintlet_input_") {
			t.Errorf("%s is still there", series)
		}
	}
}

// To show inputs again allocates nothing: it happens with each sample.
func TestShowingInputsAllocatesNothing(t *testing.T) {
	m := New("test")
	measures := []probes.Measure{{Name: "available", Path: "/", Unit: probes.Bytes, Value: 5, Degraded: 3, Clear: 4}}
	if n := testing.AllocsPerRun(100, func() { m.inputs.show(probes.DiskPressure, measures) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// The time that counts begins with the first bad sample of those that set the
// condition, and ends with the Node that has the taint.
func TestReactionTime(t *testing.T) {
	cfg, m := config.Default(), New("test")
	policy, now := cfg.Policy(), time.Unix(1e9, 0)
	state := decide.New(decide.Boot{ID: "boot", At: now}, "test", now)
	node := &taints.Node{Name: "host", UID: "uid", ResourceVersion: "1"}
	sample := func(level probes.Level, write bool) {
		t.Helper()
		o := probes.Observation{Condition: probes.PIDPressure, Level: level, Reason: "Seen", Message: "seen"}
		m.reaction.follow(o, &state, cfg, now)
		var d decide.Decision
		state, d = decide.Step(policy, state, decide.Inputs{Node: decide.Read(node), Facts: taints.Facts{StandInPrefix: cfg.StandInPrefix}, Observations: []probes.Observation{o}}, now)
		now = now.Add(time.Second)
		if d.Desired == nil || !write {
			return
		}
		node = d.Desired.ApplyTo(node)
		m.reaction.written(node, &state, now)
	}
	sample(probes.Degraded, true) // a single one sets nothing, and is forgotten
	for range 3 {
		sample(probes.OK, true)
	}
	sample(probes.Degraded, true)
	sample(probes.OK, true)
	sample(probes.Degraded, false) // decided 2 s after the first; not written yet
	sample(probes.Degraded, false)
	sample(probes.Degraded, true) // written 5 s after the first
	sample(probes.Degraded, true)
	m.reaction.written(node, &state, now) // as a heartbeat does
	if count, sum := reactions(t, m); count != 1 || sum != 5 {
		t.Errorf("%d reactions, %v s together; want one of 5 s", count, sum)
	}
	for range 130 {
		sample(probes.OK, true)
	}
	node = node.Clone()
	node.Annotations[taints.PausedAnnotation] = "true"
	for range 5 {
		sample(probes.Degraded, true)
	}
	delete(node.Annotations, taints.PausedAnnotation)
	for range 5 {
		sample(probes.Degraded, true)
	}
	if !node.Has(taints.Pair{Key: corev1.TaintNodePIDPressure, Effect: taints.NoSchedule}) {
		t.Fatal("no taint after the pause")
	}
	if count, _ := reactions(t, m); count != 1 {
		t.Errorf("%d reactions: the pause was one", count-1)
	}
}

// reactions are how many were measured, and how many seconds they took together.
func reactions(t *testing.T, m *Metrics) (count uint64, sum float64) {
	t.Helper()
	for _, family := range gather(t, m) {
		if family.GetName() == "taintlet_reaction_seconds" {
			for _, metric := range family.GetMetric() {
				count, sum = count+metric.GetHistogram().GetSampleCount(), sum+metric.GetHistogram().GetSampleSum()
			}
		}
	}
	return count, sum
}

// A sample that cannot tell shows that at once, and leaves the severity as it was.
func TestUnknownIsShown(t *testing.T) {
	m := New("test")
	const unknown, severity = `taintlet_condition_unknown{condition="PIDPressure"}`, `taintlet_condition_severity{condition="PIDPressure"}`
	for _, c := range []struct {
		level probes.Level
		want  float64
	}{{probes.Degraded, 0}, {probes.Unknown, 1}, {probes.OK, 0}} {
		m.samples.show(probes.Observation{Condition: probes.PIDPressure, Level: c.level, Severity: 60 * int(min(c.level, 1))})
		if got := gauges(t, m); got[unknown] != c.want || got[severity] != 60 {
			t.Errorf("%s: unknown %v, severity %v", c.level, got[unknown], got[severity])
		}
	}
}

// What is decided shows how long it may last, and what bounds it.
func TestTimeToClearAndTokens(t *testing.T) {
	policy, m, now := config.Default().Policy(), New("test"), time.Unix(1e9, 0)
	state := decide.New(decide.Boot{ID: "boot", At: now}, "test", now)
	node := decide.Read(&taints.Node{Name: "host", UID: "uid", ResourceVersion: "1"})
	sample := func(level probes.Level) map[string]float64 {
		o := probes.Observation{Condition: probes.DiskPressure, Level: level, Certain: level > probes.OK, Reason: "Seen", Message: "seen"}
		now = now.Add(10 * time.Second)
		state, _ = decide.Step(policy, state, decide.Inputs{Node: node, Facts: taints.Facts{StandInPrefix: policy.StandInPrefix}, Observations: []probes.Observation{o}}, now)
		m.state.show(policy, &state, now)
		return gauges(t, m)
	}
	const (
		clears = `taintlet_condition_clears_in_seconds{condition="DiskPressure"}`
		since  = `taintlet_condition_since_timestamp_seconds{condition="DiskPressure"}`
		tokens = `taintlet_write_budget_tokens{}`
	)
	if got := sample(probes.Degraded); got[clears] != 120 || got[since] != 1e9+10 || got[tokens] != 6 {
		t.Errorf("bad: clears in %v, since %v, %v tokens", got[clears], got[since], got[tokens])
	}
	sample(probes.OK)
	if got := sample(probes.OK); got[clears] != 110 || got[since] != 1e9+10 {
		t.Errorf("good for 10 s: clears in %v, since %v", got[clears], got[since])
	}
	var got map[string]float64
	for range 11 {
		got = sample(probes.OK)
	}
	if _, there := got[clears]; there || got[tokens] != 5 {
		t.Errorf("well again: clears in %v, %v tokens", got[clears], got[tokens])
	}
	for range 59 {
		got = sample(probes.OK)
	}
	if got[tokens] != 5 {
		t.Errorf("%v tokens before the interval is over", got[tokens])
	}
	if got = sample(probes.OK); got[tokens] != 6 {
		t.Errorf("%v tokens after an interval", got[tokens])
	}
}
