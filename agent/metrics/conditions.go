package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
)

// conditionMetrics are about the samples of the conditions, and what was decided.
type conditionMetrics struct {
	samples   *prometheus.CounterVec
	severity  *prometheus.GaugeVec
	changes   *prometheus.CounterVec
	level     *prometheus.GaugeVec
	since     *prometheus.GaugeVec
	clearsIn  *prometheus.GaugeVec
	contested *prometheus.GaugeVec
	repair    *prometheus.GaugeVec
	held      *prometheus.GaugeVec
	reason    *prometheus.GaugeVec
	taint     *prometheus.GaugeVec
	tokens    prometheus.Gauge

	series map[probes.Condition]*conditionSeries
	placed []decide.DesiredTaint
}

// conditionSeries are the series of one condition. To look them up takes longer
// than to set them.
type conditionSeries struct {
	levels            [3]prometheus.Gauge // from OK up
	contested, repair prometheus.Gauge
	since, clearsIn   prometheus.Gauge // nil: it is OK
	held              hold
	reason            string
}

// hold is what holds a condition back, and from what.
type hold struct {
	by   describe.Hold
	from string
}

func newConditionMetrics(s *series) conditionMetrics {
	return conditionMetrics{
		samples:   s.counters("probe_samples_total", "Samples of the condition by the level that they found.", "condition", "level"),
		severity:  s.gauges("condition_severity", "Severity of the newest sample of the condition, 0 to 100; 50 is the threshold. Absent while the newest sample is Unknown.", "condition"),
		changes:   s.counters("condition_changes_total", "Changes of the decided level.", "condition", "to"),
		level:     s.gauges("condition_level", "1 for the level that was decided for the condition, 0 for the others.", "condition", "level"),
		since:     s.gauges("condition_since_timestamp_seconds", "When the condition went from OK to Degraded; absent while it is OK.", "condition"),
		clearsIn:  s.gauges("condition_clears_in_seconds", "How long it takes until the condition is OK if every further sample is good, with the wait for the write budget; absent while it is OK.", "condition"),
		contested: s.gauges("contested", "1 while the condition's taint is a stand-in or missing because others removed it.", "condition"),
		repair:    s.gauges("repair_needed", "1 while HostRepairNeeded is True for a fault of the condition.", "condition"),
		held:      s.gauges("held", "1 while something holds the condition back from a taint, an eviction or a clear, as the Node condition says; absent while nothing does.", "condition", "what", "by"),
		reason:    s.gauges("condition_reason", "1 for the reason that the Node condition gives; absent while the condition is OK.", "condition", "reason"),
		taint:     s.gauges("taint_desired", "1 for each taint that taintlet desires on the Node now.", "condition", "key", "effect", "via"),
		tokens:    s.gauge("write_budget_tokens", "Tokens left in the emptiest bucket of the write budget."),
		series:    map[probes.Condition]*conditionSeries{},
	}
}

// begin begins the counters of a condition. One that begins with its first event hides
// that event from rate().
func (m *conditionMetrics) begin(c probes.Condition) {
	m.samples.WithLabelValues(string(c), probes.Unknown.String())
	for _, level := range []probes.Level{probes.OK, probes.Degraded, probes.Critical} {
		m.samples.WithLabelValues(string(c), level.String())
		m.changes.WithLabelValues(string(c), level.String())
	}
}

// showSample shows the newest sample. One that cannot tell has no severity.
func (m *conditionMetrics) showSample(o probes.Observation) {
	if o.Level == probes.Unknown {
		m.severity.DeleteLabelValues(string(o.Condition))
		return
	}
	m.severity.WithLabelValues(string(o.Condition)).Set(float64(o.Severity))
}

// show shows what was decided.
func (m *conditionMetrics) show(policy *decide.Policy, s *decide.State, now time.Time) {
	for i := range policy.Conditions {
		m.showCondition(policy, s, policy.Conditions[i].Name, now)
	}
	m.tokens.Set(float64(s.TokensLeft(policy, now)))
	placed := s.DesiredTaints()
	if slices.Equal(placed, m.placed) {
		return
	}
	m.placed = placed
	m.taint.Reset()
	for _, p := range placed {
		m.taint.WithLabelValues(string(p.Condition), label(p.Pair.Key), string(p.Pair.Effect), string(p.Via)).Set(1)
	}
}

func (m *conditionMetrics) showCondition(policy *decide.Policy, s *decide.State, c probes.Condition, now time.Time) {
	series := m.seriesOf(c)
	for i, g := range series.levels {
		g.Set(one(s.Level(c) == probes.OK+probes.Level(i)))
	}
	series.contested.Set(one(s.IsContested(c) || s.KeepFails(policy, c) != ""))
	series.repair.Set(one(s.NeedsRepair(c)))
	m.showWhy(s, c, series)
	since, isBad := s.Since(c)
	if !isBad {
		if series.since != nil {
			series.since, series.clearsIn = nil, nil
			m.since.DeleteLabelValues(string(c))
			m.clearsIn.DeleteLabelValues(string(c))
		}
		return
	}
	if series.since == nil {
		series.since, series.clearsIn = m.since.WithLabelValues(string(c)), m.clearsIn.WithLabelValues(string(c))
	}
	left, _ := s.TimeToClear(policy, c, now)
	series.since.Set(float64(since.UnixMilli()) / 1000)
	series.clearsIn.Set(left.Seconds())
}

// showWhy shows why a condition is not OK, and what holds it back. Each is one series,
// which is replaced when it changes.
func (m *conditionMetrics) showWhy(s *decide.State, c probes.Condition, series *conditionSeries) {
	if reason := label(s.Reason(c)); reason != series.reason {
		m.reason.DeletePartialMatch(prometheus.Labels{"condition": string(c)})
		if reason != "" {
			m.reason.WithLabelValues(string(c), reason).Set(1)
		}
		series.reason = reason
	}
	by, from := s.Held(c)
	if now := (hold{by, from}); now != series.held {
		m.held.DeletePartialMatch(prometheus.Labels{"condition": string(c)})
		if by != "" {
			m.held.WithLabelValues(string(c), from, string(by)).Set(1)
		}
		series.held = now
	}
}

func (m *conditionMetrics) seriesOf(c probes.Condition) *conditionSeries {
	if known := m.series[c]; known != nil {
		return known
	}
	name := string(c)
	series := &conditionSeries{contested: m.contested.WithLabelValues(name), repair: m.repair.WithLabelValues(name)}
	for i := range series.levels {
		series.levels[i] = m.level.WithLabelValues(name, (probes.OK + probes.Level(i)).String())
	}
	m.series[c] = series
	return series
}
