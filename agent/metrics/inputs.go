package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/taintlet/taintlet/probes"
)

// maxInputs bounds the inputs that one condition shows: four for each path that
// the configuration may have, and some.
const maxInputs = 160

// inputMetrics are the quantities that the probes judge by, and their thresholds.
// Each unit has metrics of its own.
type inputMetrics struct {
	values, thresholds [4]*prometheus.GaugeVec // by unit

	mu    *sync.Mutex
	shown map[probes.Condition]map[inputKey]*input
	// round numbers the samples, to find what the newest one lacks.
	round uint64
}

// inputKey tells one input from the others of its condition.
type inputKey struct {
	name, path string
	unit       probes.Unit
}

// input has the series of one input.
type input struct {
	value prometheus.Gauge
	// thresholds of Degraded and Critical, and the one that clears; nil: none.
	thresholds [3]prometheus.Gauge
	labels     [3]string // condition, input, path
	round      uint64
}

// thresholdLabels are the levels to which a threshold leads.
func thresholdLabels() [3]string {
	return [3]string{probes.Degraded.String(), probes.Critical.String(), probes.OK.String()}
}

func newInputMetrics(s *series) inputMetrics {
	m := inputMetrics{mu: &sync.Mutex{}, shown: map[probes.Condition]map[inputKey]*input{}}
	for unit, name := range map[probes.Unit]string{probes.Bytes: "bytes", probes.Seconds: "seconds", probes.Ratio: "ratio", probes.Items: "items"} {
		m.values[unit] = s.gauges("input_"+name, "What the newest sample of the condition showed of an input, in "+name+"; absent while it is not known.", "condition", "input", "path")
		m.thresholds[unit] = s.gauges("input_threshold_"+name, "Threshold of an input, in "+name+", by the level to which it leads; OK: the one that clears.", "condition", "input", "path", "to")
	}
	return m
}

// show shows the inputs of a condition's newest sample, and no others.
func (m *inputMetrics) show(c probes.Condition, measures []probes.Measure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.round++
	shown := m.shown[c]
	if shown == nil {
		shown = map[inputKey]*input{}
		m.shown[c] = shown
	}
	for i := range measures {
		key := inputKey{measures[i].Name, measures[i].Path, measures[i].Unit}
		in := shown[key]
		if in == nil {
			if len(shown) == maxInputs {
				continue
			}
			labels := [3]string{string(c), label(key.name), label(key.path)}
			in = &input{value: m.values[key.unit].WithLabelValues(labels[:]...), labels: labels}
			shown[key] = in
		}
		in.round = m.round
		m.set(in, &measures[i])
	}
	for key, in := range shown {
		if in.round != m.round {
			m.forget(in, key.unit)
			delete(shown, key)
		}
	}
}

// set sets the series of an input.
func (m *inputMetrics) set(in *input, measure *probes.Measure) {
	in.value.Set(measure.Value)
	for i, threshold := range [3]float64{measure.Degraded, measure.Critical, measure.Clear} {
		switch {
		case threshold == 0 && in.thresholds[i] == nil:
			continue
		case threshold == 0:
			m.thresholds[measure.Unit].DeleteLabelValues(in.labels[0], in.labels[1], in.labels[2], thresholdLabels()[i])
			in.thresholds[i] = nil
			continue
		case in.thresholds[i] == nil:
			in.thresholds[i] = m.thresholds[measure.Unit].WithLabelValues(in.labels[0], in.labels[1], in.labels[2], thresholdLabels()[i])
		}
		in.thresholds[i].Set(threshold)
	}
}

// drop forgets a condition, whose series are gone.
func (m *inputMetrics) drop(c probes.Condition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.shown, c)
}

// forget removes the series of an input.
func (m *inputMetrics) forget(in *input, unit probes.Unit) {
	labels := prometheus.Labels{"condition": in.labels[0], "input": in.labels[1], "path": in.labels[2]}
	m.values[unit].DeletePartialMatch(labels)
	m.thresholds[unit].DeletePartialMatch(labels)
}
