package pid

import "github.com/taintlet/taintlet/probes"

var _ probes.Rejudger = (*Probe)(nil)

// Rejudge judges the free tasks that were recorded.
func (p *Probe) Rejudge(_ probes.Observation, quantities []probes.Measure) (probes.Observation, bool) {
	var free, limit uint64
	var f forecast
	for _, q := range quantities {
		switch q.Name {
		case "free_tasks":
			free = uint64(q.Value)
		case "task_limit":
			limit = uint64(q.Value)
		case "empty_in":
			f = forecast{q.Duration(), true}
		}
	}
	if limit == 0 || free > limit {
		return probes.Observation{}, false
	}
	return p.thresholds.judgeBudget(budget{used: limit - free, limit: limit, setting: "as recorded"}, f, ""), true
}
