package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// prefix begins the name of each metric.
const prefix = "taintlet_"

func newGauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + name, Help: help})
}

func newGauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
}

func newCounters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
}

// begin begins the series of counters with one label. A series that begins with its
// first event hides that event from rate().
func begin(counters *prometheus.CounterVec, values ...string) {
	for _, value := range values {
		counters.WithLabelValues(value)
	}
}

// other is the label of what has no label of its own.
const other = "other"

// maxLabel is the length of the longest label that others choose, in bytes.
const maxLabel = 128

// label makes a text that others chose fit for a label.
func label(text string) string {
	if len(text) > maxLabel {
		text = text[:maxLabel-len("…")] + "…"
	}
	return strings.ToValidUTF8(text, "�")
}

// one is 1 for true.
func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
