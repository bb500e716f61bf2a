package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/agent/fleet"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// fleetMetrics are about the agents on other Nodes, and the own network.
type fleetMetrics struct {
	class    *prometheus.GaugeVec
	peers    *prometheus.GaugeVec
	levels   *prometheus.GaugeVec
	unread   *prometheus.GaugeVec
	requests *prometheus.CounterVec
}

func newFleetMetrics(s *series) fleetMetrics {
	m := fleetMetrics{
		class:    s.gauges("network_class", "1 while the class of network checks is healthy, 0 while it fails; absent: not known.", "class"),
		peers:    s.gauges("peers", "Agents on other Nodes: known ones are asked; answered counts those that did within the last minute.", "state"),
		levels:   s.gauges("peer_conditions", "Peers that reported their level of the condition within the last minute: well or bad.", "condition", "state"),
		unread:   s.gauges("fleet_list_failed", "1 while this list could not be read from the API server or was too large; the earlier list stays in use.", "list"),
		requests: s.counters("peer_requests_total", "Requests for /peer, by result: answered, or refused because there were too many.", "result"),
	}
	begin(m.requests, "answered", "refused")
	return m
}

// show shows what is known of the peers.
func (m *fleetMetrics) show(s fleet.Status, shares map[probes.Condition]decide.Share, cfg *config.Config) {
	m.peers.WithLabelValues("known").Set(float64(s.Known))
	m.peers.WithLabelValues("answered").Set(float64(s.Answered))
	for list, failed := range s.Unread {
		m.unread.WithLabelValues(list).Set(one(failed))
	}
	for i := range cfg.Conditions {
		name := cfg.Conditions[i].Name
		m.levels.WithLabelValues(string(name), "well").Set(float64(shares[name].Asked - shares[name].Bad))
		m.levels.WithLabelValues(string(name), "bad").Set(float64(shares[name].Bad))
	}
}

// showClasses shows the classes that are known, and no others.
func (m *fleetMetrics) showClasses(classes map[verdict.Class]bool) {
	for _, class := range verdict.Classes() {
		isWell, known := classes[class]
		if !known {
			m.class.DeleteLabelValues(string(class))
			continue
		}
		m.class.WithLabelValues(string(class)).Set(one(isWell))
	}
}

// count counts a request for /peer.
func (m *fleetMetrics) count(isAnswered bool) {
	if isAnswered {
		m.requests.WithLabelValues("answered").Inc()
		return
	}
	m.requests.WithLabelValues("refused").Inc()
}
