package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// maxInputs bounds the inputs that one condition shows: four for each path that
// the configuration may have, and some.
const maxInputs = 160

// scraped are the gauges. They are made with each scrape from the newest state, so a series disappears with its
// cause.
type scraped struct {
	series

	severity, level, since, clearsIn, contested, repair, held, reason, taint, tokens *prometheus.GaugeVec
	// values and thresholds, by unit, are the quantities that the probes judge by. There is one
	// metric for each unit.
	values, thresholds [4]*prometheus.GaugeVec

	config, refused, class, peers, unread *prometheus.GaugeVec
}

func newScraped() *scraped {
	g := &scraped{}
	g.severity = g.gauges("condition_severity", "Severity of the newest sample, 0 to 100; 50 is the threshold. Absent while the newest sample is Unknown.", "condition")
	g.level = g.gauges("condition_level", "1 for the decided level, 0 for the other levels.", "condition", "level")
	g.since = g.gauges("condition_since_timestamp_seconds", "When the condition became Degraded. Absent while it is OK.", "condition")
	g.clearsIn = g.gauges("condition_clears_in_seconds", "Time until the condition is OK if every further sample is good, including the wait for a token. Absent while it is OK.", "condition")
	g.contested = g.gauges("contested", "1 while the taint is missing or a stand-in because another program removed it, such as the controller when the keep policy fails.", "condition")
	g.repair = g.gauges("repair_needed", "1 while HostRepairNeeded is True for a fault of the condition.", "condition")
	g.held = g.gauges("held", "1 while something (by) holds the condition back from a taint, an eviction or clearing (what). Absent otherwise.", "condition", "what", "by")
	g.reason = g.gauges("condition_reason", "1 for the reason of the Node condition, and for that of an Unknown sample. Absent while the condition is OK.", "condition", "reason")
	g.taint = g.gauges("taint_desired", "1 for each taint that taintlet desires now; via is direct, kept or stand-in.", "condition", "key", "effect", "via")
	g.tokens = g.gauges("write_budget_tokens", "Tokens left in the emptiest bucket of the write budget.")
	for unit, name := range map[probes.Unit]string{probes.Bytes: "bytes", probes.Seconds: "seconds", probes.Ratio: "ratio", probes.Items: "items"} {
		g.values[unit] = g.gauges("input_"+name, "Newest value of an input ("+name+"). Absent while it is unknown.", "condition", "input", "path")
		g.thresholds[unit] = g.gauges("input_threshold_"+name, "Threshold of an input ("+name+"), by the level to which it leads. OK is the easier threshold.", "condition", "input", "path", "to")
	}
	g.config = g.gauges("config_info", "Always 1; the hash of the configuration in force.", "hash")
	g.refused = g.gauges("config_refused", "1 while the configuration file is invalid and not in force.")
	g.class = g.gauges("network_class", "1 while the class of network checks is healthy, 0 while it fails. Absent while it is unknown or off.", "class")
	g.peers = g.gauges("peers", "Agents on other Nodes: known, or answered within the last minute.", "state")
	g.unread = g.gauges("fleet_list_failed", "1 while the list could not be read, or was too large: agents, dns-pods or api-servers. The earlier list stays in use.", "list")
	return g
}

// Describe names the gauges.
func (m *Metrics) Describe(all chan<- *prometheus.Desc) {
	for _, vec := range m.gauges.series {
		vec.Describe(all)
	}
}

// Collect makes the gauges.
func (m *Metrics) Collect(all chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, vec := range m.gauges.series {
		vec.(*prometheus.GaugeVec).Reset()
	}
	for _, c := range m.names {
		m.gauges.showCondition(m, c)
	}
	if m.policy != nil {
		m.gauges.tokens.WithLabelValues().Set(float64(m.state.TokensLeft(m.policy, m.decidedAt)))
	}
	for _, p := range m.state.DesiredTaints() {
		m.gauges.taint.WithLabelValues(string(p.Condition), label(p.Pair.Key), string(p.Pair.Effect), string(p.Via)).Set(1)
	}
	m.gauges.config.WithLabelValues(m.hash).Set(1)
	m.gauges.refused.WithLabelValues().Set(one(m.isRefused))
	m.gauges.showFleet(m)
	for _, vec := range m.gauges.series {
		vec.Collect(all)
	}
}

// showCondition shows the newest sample of a condition, without a severity if it is Unknown, the
// measures of its probe, and the decided level.
func (g *scraped) showCondition(m *Metrics, name probes.Condition) {
	c, s := string(name), &m.state
	if o, isSampled := m.sampled[name]; isSampled && o.Level != probes.Unknown {
		g.severity.WithLabelValues(c).Set(float64(o.Severity))
	}
	g.showInputs(c, m.sampled[name].measures)
	if m.policy == nil {
		return
	}
	for level := probes.OK; level <= probes.Critical; level++ {
		g.level.WithLabelValues(c, level.String()).Set(one(s.Level(name) == level))
	}
	g.contested.WithLabelValues(c).Set(one(s.IsContested(name) || s.KeepFails(m.policy, name)))
	g.repair.WithLabelValues(c).Set(one(s.NeedsRepair(name)))
	if reason := label(s.Reason(name)); reason != "" {
		g.reason.WithLabelValues(c, reason).Set(1)
	}
	if by, from := s.Held(name); by != "" {
		g.held.WithLabelValues(c, from, string(by)).Set(1)
	}
	if since, isBad := s.Since(name); isBad {
		left, _ := s.TimeToClear(m.policy, name, m.decidedAt)
		g.since.WithLabelValues(c).Set(float64(since.UnixMilli()) / 1000)
		g.clearsIn.WithLabelValues(c).Set(left.Seconds())
	}
}

// showInputs shows what a probe measured, and the thresholds.
func (g *scraped) showInputs(c string, measures []probes.Measure) {
	for i := range measures {
		m := &measures[i]
		name, path := label(m.Name), label(m.Path)
		g.values[m.Unit].WithLabelValues(c, name, path).Set(m.Value)
		for to, threshold := range map[probes.Level]float64{probes.Degraded: m.Degraded, probes.Critical: m.Critical, probes.OK: m.Clear} {
			if threshold != 0 {
				g.thresholds[m.Unit].WithLabelValues(c, name, path, to.String()).Set(threshold)
			}
		}
	}
}

// showFleet shows what is known of the peers, and the classes of network checks that are known.
func (g *scraped) showFleet(m *Metrics) {
	g.peers.WithLabelValues("known").Set(float64(m.fleet.Known))
	g.peers.WithLabelValues("answered").Set(float64(m.fleet.Answered))
	for list, failed := range m.fleet.Unread {
		g.unread.WithLabelValues(list).Set(one(failed))
	}
	for _, class := range verdict.Classes() {
		if isWell, known := m.fleet.Classes[class]; known {
			g.class.WithLabelValues(string(class)).Set(one(isWell))
		}
	}
}
