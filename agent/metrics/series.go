package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// prefix begins the name of each metric.
const prefix = "taintlet_"

// series are taintlet's own collectors, which these methods made.
type series []prometheus.Collector

func (s *series) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return added(s, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels))
}

func (s *series) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return added(s, prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels))
}

func added[C prometheus.Collector](s *series, c C) C {
	*s = append(*s, c)
	return c
}

// other is the label of values beyond the bound.
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
