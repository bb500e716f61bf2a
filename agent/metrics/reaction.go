package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// reactionMetrics measure the time from the first bad sample to the taint. The loop
// owns them.
type reactionMetrics struct {
	duration *prometheus.HistogramVec
	open     map[probes.Condition]*reaction
}

// reaction is bad samples whose taint is not on the Node yet.
type reaction struct {
	since time.Time // the first bad sample
	good  int       // samples in a row since the last bad one
	// decided: the condition was Degraded since.
	decided bool
}

func newReactionMetrics(s *series) reactionMetrics {
	return reactionMetrics{
		duration: s.histograms("reaction_seconds", "Time from the first bad sample to the acknowledged patch that set the condition's taint.",
			[]float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900}),
		open: map[probes.Condition]*reaction{},
	}
}

// begin begins the series of a condition.
func (m *reactionMetrics) begin(c probes.Condition) { m.duration.WithLabelValues(string(c)) }

// follow takes in a sample and what was decided before it. What somebody holds back on
// purpose is no reaction.
func (m *reactionMetrics) follow(o probes.Observation, s *decide.State, cfg *config.Config, now time.Time) {
	r, isBad, decided := m.open[o.Condition], o.Level > probes.OK, s.Level(o.Condition)
	switch {
	case isHeldBack(s, o.Condition):
		delete(m.open, o.Condition)
		return
	case o.Level == probes.Unknown:
		return
	case r == nil:
		if isBad && decided == probes.OK {
			m.open[o.Condition] = &reaction{since: now}
		}
		return
	case isBad && r.decided && decided == probes.OK: // it came and went without a taint
		*r = reaction{since: now}
		return
	case isBad:
		r.good = 0
	default:
		r.good++
	}
	r.decided = r.decided || decided > probes.OK
	if c, known := cfg.Condition(o.Condition); !known || decided == probes.OK && r.good >= c.Common().Debounce.Samples {
		delete(m.open, o.Condition) // no sample of the window is bad any more
	}
}

// isHeldBack reports whether a condition's taint is held back on purpose.
func isHeldBack(s *decide.State, c probes.Condition) bool {
	return s.PausedBy(c) != "" || s.IsContested(c) || s.IsBraked(c)
}

// written takes in a Node that was written.
func (m *reactionMetrics) written(node *taints.Node, s *decide.State, now time.Time) {
	if node == nil || len(m.open) == 0 {
		return
	}
	placed := s.DesiredTaints()
	for name, r := range m.open {
		isSet := slices.ContainsFunc(placed, func(p decide.DesiredTaint) bool {
			return p.Condition == name && !p.IsSoft() && node.Has(p.Pair)
		})
		if isSet {
			m.duration.WithLabelValues(string(name)).Observe(now.Sub(r.since).Seconds())
			delete(m.open, name)
		}
	}
}
