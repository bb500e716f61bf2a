package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/taintlet/taintlet/probes"
)

// sampleMetrics are about the samples of the probes.
type sampleMetrics struct {
	severity *prometheus.GaugeVec
	unknown  *prometheus.GaugeVec
	duration *prometheus.HistogramVec
	samples  *prometheus.CounterVec
	failures *prometheus.CounterVec
	wakeMode *prometheus.GaugeVec
}

func newSampleMetrics(s *series) sampleMetrics {
	return sampleMetrics{
		severity: s.gauges("condition_severity", "Severity of the newest sample of the condition, 0 to 100; 50 is the threshold.", "condition"),
		unknown:  s.gauges("condition_unknown", "1 while the newest sample of the condition is Unknown.", "condition"),
		duration: s.histograms("probe_duration_seconds", "Time that one sample took.", []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10}),
		samples:  s.counters("probe_samples_total", "Samples of the condition by the level that they found.", "condition", "level"),
		failures: s.counters("probe_failures_total", "Samples that found the level Unknown, by reason.", "condition", "reason"),
		wakeMode: s.gauges("probe_wake_mode", "1, labelled with the source of early samples.", "condition", "mode"),
	}
}

// begin begins the series of a condition.
func (m *sampleMetrics) begin(c probes.Condition) {
	for _, level := range []probes.Level{probes.Unknown, probes.OK, probes.Degraded, probes.Critical} {
		m.samples.WithLabelValues(string(c), level.String())
	}
	m.failures.WithLabelValues(string(c), other)
}

// count counts and times one sample.
func (m *sampleMetrics) count(o probes.Observation, took time.Duration) {
	m.duration.WithLabelValues(string(o.Condition)).Observe(took.Seconds())
	m.samples.WithLabelValues(string(o.Condition), o.Level.String()).Inc()
	if o.Level == probes.Unknown {
		m.failures.WithLabelValues(string(o.Condition), failureLabel(o.Reason)).Inc()
	}
}

// show shows the newest sample.
func (m *sampleMetrics) show(o probes.Observation) {
	m.unknown.WithLabelValues(string(o.Condition)).Set(one(o.Level == probes.Unknown))
	if o.Level != probes.Unknown {
		m.severity.WithLabelValues(string(o.Condition)).Set(float64(o.Severity))
	}
}

// showWakeMode shows what wakes a probe besides its period.
func (m *sampleMetrics) showWakeMode(c probes.Condition, mode string) {
	m.wakeMode.DeletePartialMatch(prometheus.Labels{"condition": string(c)})
	m.wakeMode.WithLabelValues(string(c), mode).Set(1)
}

// failureLabel returns the reason of an Unknown sample where it is a known one.
func failureLabel(reason string) string {
	if slices.Contains(failureReasons(), reason) {
		return reason
	}
	return other
}

// failureReasons returns the reasons of Unknown samples, as docs/reasons.md has them.
func failureReasons() []string {
	return []string{
		"MeminfoUnreadable", "MeminfoIncomplete", "MeminfoGarbled", "PressureUnreadable", "PressureGarbled", "VMStatUnreadable", "VMStatGarbled",
		"ARCStatsUnreadable", "ARCStatsGarbled",
		"StatfsBlocked", "StatfsFailed", "NoFileSystem", "WritePending", "WriteDirectoryUnusable",
		"LoadavgUnreadable", "LoadavgGarbled", "PIDMaxUnreadable", "PIDMaxGarbled", "ThreadsMaxUnreadable", "ThreadsMaxGarbled",
		"PeersUnreachable", "ManySuspect", "HostSlow", "APIServerSilent", "SomePeersUnreachable", "NotProven", "RouteNotKnown", "LossElsewhereToo",
		"NodeNotSeen", "ConditionMissing", "HeartbeatNotSeen", "ConditionStale", "ReportedUnknown",
	}
}
