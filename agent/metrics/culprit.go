package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/taintlet/taintlet/probes"
)

// culpritMetrics are about who took what is scarce. No label has a name: pods come and go.
type culpritMetrics struct {
	bytes, tasks *prometheus.GaugeVec

	shown map[probes.Condition]*prometheus.GaugeVec
}

func newCulpritMetrics(s *series) culpritMetrics {
	return culpritMetrics{
		bytes: s.gauges("culprit_took_bytes", "Memory that the culprit has taken since the host was healthy, by its kind; none: the sum, where nobody took a third. Absent while it is not known.", "kind"),
		tasks: s.gauges("culprit_took_tasks", "Tasks that the culprit has taken since the host was healthy, by its kind.", "kind"),
		shown: map[probes.Condition]*prometheus.GaugeVec{},
	}
}

// show shows the culprit of a sample, and that there is none.
func (m *culpritMetrics) show(o probes.Observation) {
	c := &o.Culprit
	before := m.shown[o.Condition]
	if c.Kind == "" && (before == nil || o.Level > probes.OK) {
		return // as almost always, or the processes are being read
	}
	if before != nil {
		before.Reset()
		delete(m.shown, o.Condition)
	}
	if c.Kind == "" {
		return
	}
	gauges := m.bytes
	if c.Unit == probes.Items {
		gauges = m.tasks
	}
	gauges.WithLabelValues(c.Kind).Set(c.Took)
	m.shown[o.Condition] = gauges
}
