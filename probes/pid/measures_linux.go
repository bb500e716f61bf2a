package pid

import (
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
)

var _ probes.Measurer = (*Probe)(nil)

// Measures appends how many tasks are free of the tightest limit, and, where the
// number falls, how long they last.
func (p *Probe) Measures(all []probes.Measure) []probes.Measure {
	if !p.known {
		return all
	}
	t, limit := &p.thresholds, float64(p.budget.limit)
	enough, factor := t.freeTasks(limit), max(1, t.ClearFactor)
	free := probes.Measure{Name: "free_tasks", Unit: probes.Items, Value: p.budget.free(), Degraded: enough, Clear: enough * factor}
	if t.CriticalUsedPercent > 0 {
		free.Critical = freeAt(t.CriticalUsedPercent, limit)
	}
	all = append(all, free, probes.Measure{Name: "task_limit", Unit: probes.Items, Value: limit})
	if left := p.slope.TimeToEmpty(p.budget.free()); left < trend.Never {
		within := t.RunningOutWithin.Seconds()
		all = append(all, probes.Measure{Name: "empty_in", Unit: probes.Seconds, Value: left.Seconds(), Degraded: within, Clear: within * factor})
	}
	return all
}
