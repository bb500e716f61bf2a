package agent

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network"
	"github.com/taintlet/taintlet/taints"
)

// metrics are the agent's own. Each agent has a registry of its own.
type metrics struct {
	registry *prometheus.Registry
	level    *prometheus.GaugeVec
	severity *prometheus.GaugeVec
	duration *prometheus.HistogramVec
	samples  *prometheus.CounterVec
	changes  *prometheus.CounterVec
	notices  *prometheus.CounterVec
	writes   *prometheus.CounterVec
	taint    *prometheus.GaugeVec
	wakeMode *prometheus.GaugeVec
	lost     *prometheus.CounterVec
	config   *prometheus.GaugeVec
	refused  prometheus.Gauge
	reloads  *prometheus.CounterVec
	active   prometheus.Gauge
	slotHeld prometheus.Gauge
	build    *prometheus.GaugeVec
	// What the fleet is asked and says.
	braked       *prometheus.GaugeVec
	class        *prometheus.GaugeVec
	peers        *prometheus.GaugeVec
	peerRequests *prometheus.CounterVec

	managers map[string]bool // that lost has seen
	placed   []decide.Placed
}

func newMetrics(version string) *metrics {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "taintlet_" + name, Help: help}, labels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "taintlet_" + name, Help: help}, labels)
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		level:    gauge("condition_level", "1 for the level that was decided for the condition, 0 for the others.", "condition", "level"),
		severity: gauge("condition_severity", "Severity of the newest sample of the condition, 0 to 100; 50 is the threshold.", "condition"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "taintlet_probe_duration_seconds", Help: "Time that one sample took.",
			Buckets: []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10},
		}, []string{"condition"}),
		samples: counter("probe_samples_total", "Samples of the condition by the level that they found.", "condition", "level"),
		changes: counter("condition_changes_total", "Changes of the decided level.", "condition", "to"),
		notices: counter("notices_total", "What people are told about taints and agents, by kind.", "kind"),
		writes:  counter("node_writes_total", "Tries to write the Node, by result: ok, error, or overtaken by another writer.", "result"),
		taint:   gauge("taint_desired", "1 for each taint that taintlet desires on the Node now.", "condition", "key", "effect", "via"),
	}
	m.wakeMode = gauge("probe_wake_mode", "1, labelled with what wakes the probe besides its period.", "condition", "mode")
	m.lost = counter("taints_lost_total", "Taints of ours that somebody else removed, by the field manager that did; empty: not known.", "condition", "field_manager")
	m.managers = map[string]bool{}
	m.config = gauge("config_info", "1, labelled with the hash of the configuration in force.", "hash")
	m.refused = prometheus.NewGauge(prometheus.GaugeOpts{Name: "taintlet_config_refused", Help: "1 while the configuration file is not in force because it is invalid."})
	m.reloads = counter("config_reloads_total", "Changes of the configuration file, by result: applied or refused.", "result")
	m.active = prometheus.NewGauge(prometheus.GaugeOpts{Name: "taintlet_active", Help: "1 while this agent writes the Node, 0 while it is on standby for another one or must not write."})
	m.slotHeld = prometheus.NewGauge(prometheus.GaugeOpts{Name: "taintlet_eviction_slot_held", Help: "1 while this Node holds an eviction slot."})
	m.braked = gauge("braked", "1 while the fleet brake holds the condition's taint back.", "condition")
	m.class = gauge("network_class", "1 while the class of network checks is well, 0 while it fails; absent: not known.", "class")
	m.peers = gauge("peers", "Agents on other Nodes: known ones are asked; answered counts those that did within the last minute.", "state")
	m.peerRequests = counter("peer_requests_total", "Requests for /peer, by result: answered, or refused because there were too many.", "result")
	m.build = gauge("build_info", "1, labelled with the version.", "version")
	m.build.WithLabelValues(version).Set(1)
	m.registry.MustRegister(m.own()...)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// own returns the collectors of taintlet itself.
func (m *metrics) own() []prometheus.Collector {
	return []prometheus.Collector{
		m.level, m.severity, m.duration, m.samples, m.changes, m.notices, m.writes, m.taint, m.wakeMode,
		m.lost, m.config, m.refused, m.reloads, m.active, m.slotHeld, m.build,
		m.braked, m.class, m.peers, m.peerRequests,
	}
}

// timed counts and times one sample.
func (m *metrics) timed(o probes.Observation, took time.Duration) {
	m.duration.WithLabelValues(string(o.Condition)).Observe(took.Seconds())
	m.samples.WithLabelValues(string(o.Condition), o.Level.String()).Inc()
}

func (m *metrics) wakeModeIs(c probes.Condition, mode string) {
	m.wakeMode.DeletePartialMatch(prometheus.Labels{"condition": string(c)})
	m.wakeMode.WithLabelValues(string(c), mode).Set(1)
}

func (m *metrics) observe(o probes.Observation) {
	if o.Level != probes.Unknown {
		m.severity.WithLabelValues(string(o.Condition)).Set(float64(o.Severity))
	}
}

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

func (m *metrics) slot(now decide.Slot) {
	m.slotHeld.Set(0)
	if now == decide.SlotHeld {
		m.slotHeld.Set(1)
	}
}

// maxManagers bounds the time series that others can make by their names.
const maxManagers = 16

func (m *metrics) managerLabel(name string) string {
	if !m.managers[name] && len(m.managers) == maxManagers {
		return "other"
	}
	m.managers[name] = true
	return name
}

// configured shows which configuration is in force.
func (m *metrics) configured(hash string) {
	m.config.Reset()
	m.config.WithLabelValues(hash).Set(1)
	m.refused.Set(0)
}

func (m *metrics) wrote(err error) {
	outcome := "ok"
	switch {
	case errors.Is(err, taints.ErrOvertaken):
		outcome = "overtaken"
	case err != nil:
		outcome = "error"
	}
	m.writes.WithLabelValues(outcome).Inc()
}

// fleet shows what is known of the peers and of the own network.
func (m *metrics) fleet(s fleet.Status) {
	m.peers.WithLabelValues("known").Set(float64(s.Known))
	m.peers.WithLabelValues("answered").Set(float64(s.Answered))
	for _, class := range network.Classes() {
		isWell, known := s.Classes[class]
		switch {
		case !known:
			m.class.DeleteLabelValues(string(class))
		case isWell:
			m.class.WithLabelValues(string(class)).Set(1)
		default:
			m.class.WithLabelValues(string(class)).Set(0)
		}
	}
}

// state shows what was decided.
func (m *metrics) state(cfg *config.Config, s *decide.State) {
	for _, c := range cfg.Names() {
		for _, level := range []probes.Level{probes.OK, probes.Degraded, probes.Critical} {
			value := 0.0
			if s.Level(c) == level {
				value = 1
			}
			m.level.WithLabelValues(string(c), level.String()).Set(value)
		}
		m.braked.WithLabelValues(string(c)).Set(0)
		if s.IsBraked(c) {
			m.braked.WithLabelValues(string(c)).Set(1)
		}
	}
	m.active.Set(1)
	if s.WhyNotWriting() != "" {
		m.active.Set(0)
	}
	placed := s.Placed()
	if len(placed) == 0 && len(m.placed) == 0 {
		return
	}
	m.placed = placed
	m.taint.Reset()
	for _, p := range placed {
		m.taint.WithLabelValues(string(p.Condition), p.Pair.Key, string(p.Pair.Effect), string(p.Via)).Set(1)
	}
}
