package agent

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints/apiserver"
)

// metrics are the agent's own. Each agent has a registry of its own. What a label
// can say is bounded, whoever chose the words.
type metrics struct {
	registry *prometheus.Registry
	samples  sampleMetrics
	state    stateMetrics
	inputs   inputMetrics
	reaction reactionMetrics
	fleet    fleetMetrics

	changes *prometheus.CounterVec
	notices *prometheus.CounterVec
	writes  *prometheus.CounterVec
	lost    *prometheus.CounterVec
	config  *prometheus.GaugeVec
	refused prometheus.Gauge
	reloads *prometheus.CounterVec
	slots   prometheus.Gauge
	build   *prometheus.GaugeVec

	managers map[string]bool // that lost has seen
}

func newMetrics(version string) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		samples:  newSampleMetrics(), state: newStateMetrics(), inputs: newInputMetrics(), reaction: newReactionMetrics(), fleet: newFleetMetrics(),
		changes:  newCounters("condition_changes_total", "Changes of the decided level.", "condition", "to"),
		notices:  newCounters("notices_total", "What people are told about taints and agents, by kind.", "kind"),
		writes:   newCounters("node_writes_total", "Tries to write the Node, by result: ok, error, or overtaken by another writer.", "result"),
		lost:     newCounters("taints_lost_total", "Taints of ours that somebody else removed, by the field manager that did; empty: not known.", "condition", "field_manager"),
		config:   newGauges("config_info", "1, labelled with the hash of the configuration in force.", "hash"),
		refused:  newGauge("config_refused", "1 while the configuration file is not in force because it is invalid."),
		reloads:  newCounters("config_reloads_total", "Changes of the configuration file, by result: applied or refused.", "result"),
		slots:    newGauge("eviction_slot_held", "1 while this Node holds an eviction slot."),
		build:    newGauges("build_info", "1, labelled with the version.", "version"),
		managers: map[string]bool{},
	}
	m.build.WithLabelValues(version).Set(1)
	// A series that begins with its first event hides that event from rate().
	for _, result := range []string{"ok", "error", "overtaken"} {
		m.writes.WithLabelValues(result)
	}
	for _, result := range []string{"applied", "refused"} {
		m.reloads.WithLabelValues(result)
	}
	for _, kind := range noticeKinds() {
		m.notices.WithLabelValues(string(kind))
	}
	m.registry.MustRegister(m.own()...)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// own returns the collectors of taintlet itself.
func (m *metrics) own() []prometheus.Collector {
	all := []prometheus.Collector{m.changes, m.notices, m.writes, m.lost, m.config, m.refused, m.reloads, m.slots, m.build}
	for _, more := range [][]prometheus.Collector{m.samples.all(), m.state.all(), m.inputs.all(), m.reaction.all(), m.fleet.all()} {
		all = append(all, more...)
	}
	return all
}

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

// conditions begins the series of the configured conditions.
func (m *metrics) conditions(cfg *config.Config) {
	for _, c := range cfg.Names() {
		for _, level := range []probes.Level{probes.OK, probes.Degraded, probes.Critical} {
			m.changes.WithLabelValues(string(c), level.String())
		}
		m.lost.WithLabelValues(string(c), "")
		m.samples.begin(c)
		m.reaction.begin(c)
	}
}

// noticeKinds returns all kinds of Notices but LevelChanged, which is counted by its
// level.
func noticeKinds() []decide.Kind {
	return []decide.Kind{
		decide.TaintLost, decide.TaintContested, decide.TaintVetoed, decide.TaintWithdrawn, decide.StillUnknown, decide.RecordRefused,
		decide.Standby, decide.Active, decide.Paused, decide.Resumed, decide.EvictionWaits, decide.TaintBraked,
	}
}

// notice counts what people are told.
func (m *metrics) notice(n decide.Notice) {
	if n.Kind == decide.LevelChanged {
		m.changes.WithLabelValues(string(n.Condition), n.To.String()).Inc()
		return
	}
	m.notices.WithLabelValues(string(n.Kind)).Inc()
	if n.Kind == decide.TaintLost {
		m.lost.WithLabelValues(string(n.Condition), m.managerLabel(n.By)).Inc()
	}
}

func (m *metrics) slot(now decide.Slot) { m.slots.Set(one(now == decide.SlotHeld)) }

// maxManagers bounds the time series that others can make by their names.
const maxManagers = 16

func (m *metrics) managerLabel(name string) string {
	if !m.managers[name] && len(m.managers) == maxManagers {
		return other
	}
	m.managers[name] = true
	return label(name)
}

// configured shows which configuration is in force.
func (m *metrics) configured(cfg *config.Config) {
	m.config.Reset()
	m.config.WithLabelValues(cfg.Hash).Set(1)
	m.refused.Set(0)
	m.conditions(cfg)
}

func (m *metrics) wrote(err error) {
	outcome := "ok"
	switch {
	case errors.Is(err, apiserver.ErrOvertaken):
		outcome = "overtaken"
	case err != nil:
		outcome = "error"
	}
	m.writes.WithLabelValues(outcome).Inc()
}

// one is 1 for true.
func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
