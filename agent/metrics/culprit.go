package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/taintlet/taintlet/probes"
)

// culpritMetrics are about who took what is scarce. No label has a name: pods come and go.
type culpritMetrics struct {
	bytes, tasks *prometheus.GaugeVec

	shown map[probes.Condition]bool
}

func newCulpritMetrics() culpritMetrics {
	return culpritMetrics{
		bytes: newGauges("culprit_took_bytes", "Memory that the consumer that took most has taken since the host was healthy, by its kind; none: nobody took a third, and it is what all took. Absent while that is not known.", "kind"),
		tasks: newGauges("culprit_took_tasks", "The same of tasks.", "kind"),
		shown: map[probes.Condition]bool{},
	}
}

func (m *culpritMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.bytes, m.tasks}
}

// show shows the culprit of a sample, and that there is none.
func (m *culpritMetrics) show(o probes.Observation) {
	c := &o.Culprit
	if c.Kind == "" && !m.shown[o.Condition] || c.Kind == "" && o.Level > probes.OK {
		return // as almost always, or the processes are being read
	}
	gauges := m.bytes
	if o.Condition == probes.PIDPressure {
		gauges = m.tasks
	}
	gauges.Reset()
	if m.shown[o.Condition] = c.Kind != ""; m.shown[o.Condition] {
		gauges.WithLabelValues(c.Kind).Set(c.Took)
	}
}
