package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"

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
			texts[i] = fmt.Sprintf("%d\"}\n# HELP taintlet_held\n", i)
		default:
			texts[i] = fmt.Sprintf("%s%d", strings.Repeat("é", 63)+"x", i)
		}
	}
	return texts
}

// fill makes the metrics show all that they can show, in hostile words: with a multiple of 16 of them, the
// newest samples are critical.
func fill(t *testing.T, m *Metrics, texts []string) {
	t.Helper()
	cfg, now := config.Default(), time.Unix(1e9, 0)
	m.Configured(cfg)
	policy := cfg.Policy()
	state := decide.New(decide.Boot{ID: "boot", At: now}, texts[0])
	node := decide.Read(&taints.Node{Name: texts[0], UID: "uid", ResourceVersion: "1", Annotations: map[string]string{taints.PausedAnnotation: "PIDPressure"}})
	var measures []probes.Measure
	for i, text := range texts {
		c := cfg.Names()[i%4]
		o := probes.Observation{Condition: c, Level: probes.Level(i / 4 % 4), Reason: text, Message: text, Certain: true}
		m.Noticed(decide.Notice{Kind: decide.TaintLost, Condition: c, By: text, Message: text})
		state, _ = decide.Step(policy, state, decide.Inputs{Node: node, Facts: taints.Facts{StandInPrefix: cfg.KeyPrefix}, Observations: []probes.Observation{o}}, now)
		m.Decided(policy, &state, fleet.Status{Unread: map[string]bool{"agents": true}, Classes: map[verdict.Class]bool{verdict.DNS: true, verdict.Class(text): true}}, now)
		measures = append(measures, probes.Measure{Name: "available", Path: text, Unit: probes.Unit(i % 4), Value: 1, Degraded: 1, Critical: 1, Clear: 1})
		m.Sampled(o, measures)
		m.Wrote(nil)
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
		"taintlet_taints_lost_total": 4 * (len(knownManagers()) + 1),
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

// Names, types and help texts are as Prometheus asks for.
func TestMetricsAreLinted(t *testing.T) {
	m := New("test")
	fill(t, m, hostileTexts(208))
	families := gather(t, m)
	if len(families) != len(all(m)) {
		t.Errorf("%d of %d metrics have a series", len(families), len(all(m)))
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
	show := func(c probes.Condition, measures []probes.Measure) {
		m.Sampled(probes.Observation{Condition: c}, measures)
	}
	m.Configured(config.Default())
	show(probes.DiskPressure, both)
	gauges(t, m)
	show(probes.DiskPressure, both[:1])
	both[0].Clear = 0
	show(probes.MemoryPressure, both)
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

// To take a sample allocates nothing: series are made with a scrape only.
func TestSamplesAllocateNothing(t *testing.T) {
	m := New("test")
	measures := []probes.Measure{{Name: "available", Path: "/", Unit: probes.Bytes, Value: 5, Degraded: 3, Clear: 4}}
	if n := testing.AllocsPerRun(100, func() { m.Sampled(probes.Observation{Condition: probes.DiskPressure}, measures) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A sample that cannot tell shows that at once: it has no severity.
func TestUnknownIsShown(t *testing.T) {
	m := New("test")
	m.Configured(config.Default())
	const severity = `taintlet_condition_severity{condition="PIDPressure"}`
	for _, level := range []probes.Level{probes.Degraded, probes.Unknown, probes.OK} {
		m.Sampled(probes.Observation{Condition: probes.PIDPressure, Level: level, Severity: 60}, nil)
		if got, there := gauges(t, m)[severity]; there != (level != probes.Unknown) || there && got != 60 {
			t.Errorf("%s: severity %v (%t)", level, got, there)
		}
	}
}

// What is decided shows how long it may last, and what bounds it.
func TestTimeToClearAndTokens(t *testing.T) {
	policy, m, now := config.Default().Policy(), New("test"), time.Unix(1e9, 0)
	m.Configured(config.Default())
	state := decide.New(decide.Boot{ID: "boot", At: now}, "test")
	node := decide.Read(&taints.Node{Name: "host", UID: "uid", ResourceVersion: "1"})
	sample := func(level probes.Level) map[string]float64 {
		o := probes.Observation{Condition: probes.DiskPressure, Level: level, Certain: level > probes.OK, Reason: "Seen", Message: "seen"}
		now = now.Add(10 * time.Second)
		state, _ = decide.Step(policy, state, decide.Inputs{Node: node, Facts: taints.Facts{StandInPrefix: policy.StandInPrefix}, Observations: []probes.Observation{o}}, now)
		m.Decided(policy, &state, fleet.Status{}, now)
		return gauges(t, m)
	}
	const (
		clears = `taintlet_condition_clears_in_seconds{condition="DiskPressure"}`
		since  = `taintlet_condition_since_timestamp_seconds{condition="DiskPressure"}`
		tokens = `taintlet_write_budget_tokens{}`
	)
	if got := sample(probes.Degraded); got[clears] != 120 || got[since] != 1e9+10 || got[tokens] != 3 {
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
	if _, there := got[clears]; there || got[tokens] != 2 {
		t.Errorf("well again: clears in %v, %v tokens", got[clears], got[tokens])
	}
	for range 239 {
		got = sample(probes.OK)
	}
	if got[tokens] != 2 {
		t.Errorf("%v tokens before the interval is over", got[tokens])
	}
	if got = sample(probes.OK); got[tokens] != 3 {
		t.Errorf("%v tokens after an interval", got[tokens])
	}
}
