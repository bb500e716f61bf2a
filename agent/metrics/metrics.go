// Package metrics is what an agent shows to Prometheus. The agent says what happened;
// this package knows the names, labels and bounds of the series.
package metrics

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/taints/apiserver"
)

// Metrics are those of one agent, which has a registry of its own. The number of values
// of each label is bounded, whoever chose the words. One goroutine, the loop of the
// agent, calls all methods but Sampled, which any may call.
type Metrics struct {
	registry   *prometheus.Registry
	own        series
	conditions conditionMetrics
	inputs     inputMetrics

	writes  *prometheus.CounterVec
	lost    *prometheus.CounterVec
	config  *prometheus.GaugeVec
	refused prometheus.Gauge
	class   *prometheus.GaugeVec
	peers   *prometheus.GaugeVec
	unread  *prometheus.GaugeVec

	managers map[string]bool // that lost has a series of
	names    []probes.Condition
}

// New returns the metrics of an agent of that version.
func New(version string) *Metrics {
	s := &series{}
	m := &Metrics{
		registry: prometheus.NewRegistry(), conditions: newConditionMetrics(s), inputs: newInputMetrics(s),
		writes:   s.counters("node_writes_total", "Tries to write the Node, by result: ok, error, or overtaken by another writer.", "result"),
		lost:     s.counters("taints_lost_total", "Taints of taintlet that others removed, by field manager; empty: not known.", "condition", "field_manager"),
		config:   s.gauges("config_info", "1, labelled with the hash of the configuration in force.", "hash"),
		refused:  s.gauge("config_refused", "1 while the configuration file is not in force because it is invalid."),
		class:    s.gauges("network_class", "1 while the class of network checks is healthy, 0 while it fails; absent: not known.", "class"),
		peers:    s.gauges("peers", "Agents on other Nodes: known ones are asked; answered counts those that did within the last minute.", "state"),
		unread:   s.gauges("fleet_list_failed", "1 while this list could not be read from the API server or was too large; the earlier list stays in use.", "list"),
		managers: map[string]bool{},
	}
	s.gauges("build_info", "1, labelled with the version.", "version").WithLabelValues(version).Set(1)
	for _, result := range []string{"ok", "error", "overtaken"} {
		m.writes.WithLabelValues(result) // a series that begins with its first event hides it from rate()
	}
	m.own = *s
	m.registry.MustRegister(m.own...)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Gatherer returns all metrics, with those of the process and of Go.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// Configured shows which configuration is in force, and begins the series of its
// conditions.
func (m *Metrics) Configured(cfg *config.Config) {
	m.config.Reset()
	m.config.WithLabelValues(cfg.Hash).Set(1)
	m.names = cfg.Names()
	for _, c := range m.names {
		m.conditions.begin(c)
		m.lost.WithLabelValues(string(c), other)
		for _, manager := range knownManagers() {
			m.lost.WithLabelValues(string(c), m.managerLabel(manager))
		}
	}
}

// Refused shows whether the configuration file is refused and so not in force.
func (m *Metrics) Refused(isRefused bool) {
	m.refused.Set(0)
	if isRefused {
		m.refused.Set(1)
	}
}

// Forget ends the series of a condition that is dropped.
func (m *Metrics) Forget(c probes.Condition) {
	for _, one := range m.own {
		if labelled, ok := one.(interface{ DeletePartialMatch(prometheus.Labels) int }); ok {
			labelled.DeletePartialMatch(prometheus.Labels{"condition": string(c)})
		}
	}
	delete(m.conditions.series, c)
	m.inputs.drop(c)
}

// Sampled counts a sample, and shows what its probe measured.
func (m *Metrics) Sampled(o probes.Observation, measures []probes.Measure) {
	m.conditions.samples.WithLabelValues(string(o.Condition), o.Level.String()).Inc()
	m.inputs.show(o.Condition, measures)
}

// Observed shows a sample that the decider gets next.
func (m *Metrics) Observed(o probes.Observation) { m.conditions.showSample(o) }

// Decided shows what was decided.
func (m *Metrics) Decided(policy *decide.Policy, s *decide.State, now time.Time) {
	m.conditions.show(policy, s, now)
}

// Noticed counts a change of a level, and a taint that others removed.
func (m *Metrics) Noticed(n decide.Notice) {
	switch n.Kind {
	case decide.LevelChanged:
		m.conditions.changes.WithLabelValues(string(n.Condition), n.To.String()).Inc()
	case decide.TaintLost:
		m.lost.WithLabelValues(string(n.Condition), m.countedAs(n.By)).Inc()
	}
}

// knownManagers are the field managers that remove taints most often. Empty: the API
// server does not know who removed the last taint of a Node.
func knownManagers() []string {
	return []string{
		"", "kubectl-taint", "kubectl-edit", "kubectl-patch", "kubectl-replace", "kubectl-client-side-apply", "kubectl",
		"kube-controller-manager", "cloud-controller-manager", "kubelet", "cluster-autoscaler", "karpenter",
	}
}

// maxManagers bounds the time series that others can make by their names.
const maxManagers = 24

// countedAs returns the label under which a removal is counted. The series of a field
// manager that is new begins at 0 with its first removal, which is counted under other:
// increase() cannot see a series that begins at 1.
func (m *Metrics) countedAs(manager string) string {
	if m.managers[manager] {
		return label(manager)
	}
	if of := m.managerLabel(manager); of != other {
		for _, c := range m.names {
			m.lost.WithLabelValues(string(c), of)
		}
	}
	return other
}

func (m *Metrics) managerLabel(name string) string {
	if !m.managers[name] && len(m.managers) == maxManagers {
		return other
	}
	m.managers[name] = true
	return label(name)
}

// Wrote counts a try to write the Node.
func (m *Metrics) Wrote(err error) {
	switch {
	case errors.Is(err, apiserver.ErrOvertaken):
		m.writes.WithLabelValues("overtaken").Inc()
	case err != nil:
		m.writes.WithLabelValues("error").Inc()
	default:
		m.writes.WithLabelValues("ok").Inc()
	}
}

// NetworkIs shows the classes of network checks that are known, and no others.
func (m *Metrics) NetworkIs(classes map[verdict.Class]bool) {
	for _, class := range verdict.Classes() {
		isWell, known := classes[class]
		if !known {
			m.class.DeleteLabelValues(string(class))
			continue
		}
		m.class.WithLabelValues(string(class)).Set(one(isWell))
	}
}

// FleetIs shows what is known of the peers.
func (m *Metrics) FleetIs(s fleet.Status) {
	m.peers.WithLabelValues("known").Set(float64(s.Known))
	m.peers.WithLabelValues("answered").Set(float64(s.Answered))
	for list, failed := range s.Unread {
		m.unread.WithLabelValues(list).Set(one(failed))
	}
}
