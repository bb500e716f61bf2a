// Package metrics is what an agent shows to Prometheus. The agent says what happened;
// this package knows the names, labels and bounds of the series.
package metrics

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints/apiserver"
)

// Metrics are those of one agent, in a separate registry. The number of values of each label is
// bounded, even for words that other programs choose. One goroutine, the loop of the agent, calls
// all methods but Sampled and those of a scrape, which any may call.
type Metrics struct {
	registry *prometheus.Registry
	counters series
	gauges   *scraped

	samples, changes, writes, lost *prometheus.CounterVec

	mu sync.Mutex
	told
}

// told is what the agent told most recently.
type told struct {
	names     []probes.Condition
	hash      string
	isRefused bool
	sampled   map[probes.Condition]sample
	policy    *decide.Policy // nil: nothing was decided
	state     decide.State
	decidedAt time.Time
	fleet     fleet.Status
}

// sample is the newest one of a condition.
type sample struct {
	probes.Observation
	measures []probes.Measure
}

// New returns the metrics of an agent of that version.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), gauges: newScraped(), told: told{sampled: map[probes.Condition]sample{}}}
	s := &m.counters
	m.samples = s.counters("probe_samples_total", "Samples by their level.", "condition", "level")
	m.changes = s.counters("condition_changes_total", "Changes of the decided level.", "condition", "to")
	m.writes = s.counters("node_writes_total", "Writes of the Node: ok, error, or overtaken by another writer and repeated.", "result")
	m.lost = s.counters("taints_lost_total", "Taints of taintlet that other programs removed; field_manager is empty if it is unknown.", "condition", "field_manager")
	s.gauges("build_info", "Always 1; the version of the agent.", "version").WithLabelValues(version).Set(1)
	for _, result := range []string{"ok", "error", "overtaken"} {
		m.writes.WithLabelValues(result) // a series that begins with its first event hides it from rate()
	}
	m.registry.MustRegister(m.counters...)
	m.registry.MustRegister(m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Gatherer returns all metrics, with those of the process and of Go.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// Configured shows which configuration is in force, and begins the series of its
// conditions. A counter that begins with its first event hides that event from rate().
func (m *Metrics) Configured(cfg *config.Config) {
	m.mu.Lock()
	m.hash, m.names = cfg.Hash, cfg.Names()
	m.mu.Unlock()
	for _, c := range m.names {
		m.samples.WithLabelValues(string(c), probes.Unknown.String())
		for _, level := range []probes.Level{probes.OK, probes.Degraded, probes.Critical} {
			m.samples.WithLabelValues(string(c), level.String())
			m.changes.WithLabelValues(string(c), level.String())
		}
		for _, manager := range append(knownManagers(), other) {
			m.lost.WithLabelValues(string(c), manager)
		}
	}
}

// Refused shows whether the configuration file is refused and so not in force.
func (m *Metrics) Refused(isRefused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.isRefused = isRefused
}

// Forget ends the series of a condition that is dropped.
func (m *Metrics) Forget(c probes.Condition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, counter := range []*prometheus.CounterVec{m.samples, m.changes, m.lost} {
		counter.DeletePartialMatch(prometheus.Labels{"condition": string(c)})
	}
	delete(m.sampled, c)
	m.names = slices.DeleteFunc(m.names, func(name probes.Condition) bool { return name == c })
}

// Sampled counts a sample, and takes what its probe measured.
func (m *Metrics) Sampled(o probes.Observation, measures []probes.Measure) {
	m.samples.WithLabelValues(string(o.Condition), o.Level.String()).Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sampled[o.Condition] = sample{o, append(m.sampled[o.Condition].measures[:0], measures[:min(len(measures), maxInputs)]...)}
}

// Decided takes in the newest State, and the status of the peers and of the network.
func (m *Metrics) Decided(policy *decide.Policy, s *decide.State, peers fleet.Status, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.policy, m.state, m.fleet, m.decidedAt = policy, *s, peers, now // a State is never changed
}

// Noticed counts a change of a level, and a taint that another client removed.
func (m *Metrics) Noticed(n decide.Notice) {
	switch n.Kind {
	case decide.LevelChanged:
		m.changes.WithLabelValues(string(n.Condition), n.To.String()).Inc()
	case decide.TaintLost:
		by := other // an Event has the name
		if slices.Contains(knownManagers(), n.By) {
			by = n.By
		}
		m.lost.WithLabelValues(string(n.Condition), by).Inc()
	}
}

// knownManagers are the field managers that remove taints most often. Only they have their own
// series, because other programs choose these names. Empty: the API server does not know who
// removed the last taint of a Node.
func knownManagers() []string {
	return []string{
		"", "kubectl-taint", "kubectl-edit", "kubectl-patch", "kubectl-replace", "kubectl-client-side-apply", "kubectl",
		"kube-controller-manager", "cloud-controller-manager", "kubelet", "cluster-autoscaler", "karpenter",
	}
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
