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
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

// Metrics are those of one agent, which has a registry of its own. The number of values
// of each label is bounded, whoever chose the words. One goroutine, the loop of the
// agent, calls all methods but Sampled, WokenBy and PeerRequest, which any may call.
type Metrics struct {
	registry *prometheus.Registry
	own      series
	samples  sampleMetrics
	state    stateMetrics
	inputs   inputMetrics
	reaction reactionMetrics
	fleet    fleetMetrics
	culprit  culpritMetrics

	changes *prometheus.CounterVec
	notices *prometheus.CounterVec
	writes  *prometheus.CounterVec
	lost    *prometheus.CounterVec
	config  *prometheus.GaugeVec
	refused prometheus.Gauge
	reloads *prometheus.CounterVec
	slots   prometheus.Gauge
	build   *prometheus.GaugeVec

	managers   map[string]bool // that lost has a series of
	conditions []probes.Condition
}

// New returns the metrics of an agent of that version.
func New(version string) *Metrics {
	s := &series{}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		samples:  newSampleMetrics(s), state: newStateMetrics(s), inputs: newInputMetrics(s), reaction: newReactionMetrics(s), fleet: newFleetMetrics(s), culprit: newCulpritMetrics(s),
		changes:  s.counters("condition_changes_total", "Changes of the decided level.", "condition", "to"),
		notices:  s.counters("notices_total", "Notices about taints and agents, by kind.", "kind"),
		writes:   s.counters("node_writes_total", "Tries to write the Node, by result: ok, error, or overtaken by another writer.", "result"),
		lost:     s.counters("taints_lost_total", "Taints of taintlet that others removed, by field manager; empty: not known.", "condition", "field_manager"),
		config:   s.gauges("config_info", "1, labelled with the hash of the configuration in force.", "hash"),
		refused:  s.gauge("config_refused", "1 while the configuration file is not in force because it is invalid."),
		reloads:  s.counters("config_reloads_total", "Changes of the configuration file, by result: applied or refused.", "result"),
		slots:    s.gauge("eviction_slot_held", "1 while this Node holds an eviction slot."),
		build:    s.gauges("build_info", "1, labelled with the version.", "version"),
		managers: map[string]bool{},
	}
	m.build.WithLabelValues(version).Set(1)
	begin(m.writes, "ok", "error", "overtaken")
	begin(m.reloads, "applied", "refused")
	for _, kind := range noticeKinds() {
		begin(m.notices, string(kind))
	}
	m.own = *s
	m.registry.MustRegister(m.own...)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// noticeKinds returns all kinds of Notices but LevelChanged, which is counted by its
// level.
func noticeKinds() []decide.Kind {
	return []decide.Kind{
		decide.TaintLost, decide.KeepPolicyFails, decide.TaintContested, decide.TaintVetoed, decide.TaintWithdrawn, decide.TaintAcknowledged, decide.StillUnknown, decide.RecordRefused,
		decide.Standby, decide.Active, decide.Paused, decide.Resumed, decide.EvictionWaits, decide.TaintBraked,
		decide.StartupTaintRemoved, decide.StartupTaintStays, decide.SoftTaintSet, decide.SoftTaintCleared,
	}
}

// Gatherer returns all metrics, with those of the process and of Go.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// Configured shows which configuration is in force, and begins the series of its
// conditions.
func (m *Metrics) Configured(cfg *config.Config) {
	m.config.Reset()
	m.config.WithLabelValues(cfg.Hash).Set(1)
	m.refused.Set(0)
	m.conditions = cfg.Names()
	for _, c := range m.conditions {
		for _, level := range []probes.Level{probes.OK, probes.Degraded, probes.Critical} {
			m.changes.WithLabelValues(string(c), level.String())
		}
		m.lost.WithLabelValues(string(c), other)
		for _, manager := range knownManagers() {
			m.lost.WithLabelValues(string(c), m.managerLabel(manager))
		}
		m.samples.begin(c)
		m.reaction.begin(c)
	}
}

// Forget ends the series of a condition that is dropped.
func (m *Metrics) Forget(c probes.Condition) {
	for _, one := range m.own {
		if labelled, ok := one.(interface{ DeletePartialMatch(prometheus.Labels) int }); ok {
			labelled.DeletePartialMatch(prometheus.Labels{"condition": string(c)})
		}
	}
}

// Reloaded counts a change of the configuration file. An error says why it is refused.
func (m *Metrics) Reloaded(err error) {
	if err != nil {
		m.refused.Set(1)
		m.reloads.WithLabelValues("refused").Inc()
		return
	}
	m.reloads.WithLabelValues("applied").Inc()
}

// Sampled counts a sample and the time that it took, and shows what its probe measured.
func (m *Metrics) Sampled(o probes.Observation, took time.Duration, measures []probes.Measure) {
	m.samples.count(o, took)
	m.inputs.show(o.Condition, measures)
}

// WokenBy shows what wakes the probe of a condition besides its period.
func (m *Metrics) WokenBy(c probes.Condition, mode string) { m.samples.showWakeMode(c, mode) }

// Observed shows a sample that the decider gets next. The state is the one before it.
func (m *Metrics) Observed(o probes.Observation, s *decide.State, cfg *config.Config, now time.Time) {
	m.samples.show(o)
	m.culprit.show(o)
	m.reaction.follow(o, s, cfg, now)
}

// Decided shows what was decided.
func (m *Metrics) Decided(policy *decide.Policy, s *decide.State, now time.Time) {
	m.state.show(policy, s, now)
}

// Noticed counts a Notice.
func (m *Metrics) Noticed(n decide.Notice) {
	if n.Kind == decide.LevelChanged {
		m.changes.WithLabelValues(string(n.Condition), n.To.String()).Inc()
		return
	}
	m.notices.WithLabelValues(string(n.Kind)).Inc()
	if n.Kind == decide.TaintLost {
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
		for _, c := range m.conditions {
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

// Wrote counts a try to write the Node. node is the newest version, or nil.
func (m *Metrics) Wrote(node *taints.Node, err error, s *decide.State, now time.Time) {
	switch {
	case errors.Is(err, apiserver.ErrOvertaken):
		m.writes.WithLabelValues("overtaken").Inc()
	case err != nil:
		m.writes.WithLabelValues("error").Inc()
	default:
		m.writes.WithLabelValues("ok").Inc()
		m.reaction.written(node, s, now)
	}
}

// SlotIs shows whether this Node holds an eviction slot.
func (m *Metrics) SlotIs(now decide.Slot) { m.slots.Set(one(now == decide.SlotHeld)) }

// NetworkIs shows the classes of network checks that are known.
func (m *Metrics) NetworkIs(classes map[verdict.Class]bool) { m.fleet.showClasses(classes) }

// FleetIs shows what is known of the peers.
func (m *Metrics) FleetIs(s fleet.Status, shares map[probes.Condition]decide.Share, cfg *config.Config) {
	m.fleet.show(s, shares, cfg)
}

// PeerRequest counts a request for /peer.
func (m *Metrics) PeerRequest(isAnswered bool) { m.fleet.count(isAnswered) }
