package pid

import (
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
)

// Rejudge judges the free tasks that were recorded, as Measures names them. False: the
// level does not follow from them.
func (t Thresholds) Rejudge(quantities []probes.Measure) (probes.Observation, bool) {
	var free, limit uint64
	emptyIn := trend.Never
	for _, q := range quantities {
		switch q.Name {
		case "free_tasks":
			free = uint64(q.Value)
		case "task_limit":
			limit = uint64(q.Value)
		case "empty_in":
			emptyIn = q.Duration()
		}
	}
	if limit == 0 || free > limit {
		return probes.Observation{}, false
	}
	return t.judgeBudget(budget{used: limit - free, limit: limit, setting: "as recorded"}, emptyIn, ""), true
}
