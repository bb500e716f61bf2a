package pid

import (
	"context"

	"github.com/taintlet/taintlet/probes"
)

// Probe watches how many tasks (processes and their threads) the host may still start.
type Probe struct {
	probes.PeriodOnly

	host       probes.Host
	thresholds Thresholds
	newest     sample // the newest that could be read
	known      bool   // the newest sample could be read
}

// New returns the probe of the host's tasks. It reads loadavg,
// sys/kernel/pid_max and sys/kernel/threads-max in h.Proc. It does not walk
// the processes.
func New(h probes.Host, t Thresholds) *Probe { return &Probe{host: h, thresholds: t} }

// Condition returns PIDPressure.
func (*Probe) Condition() probes.Condition { return probes.PIDPressure }

// Observe takes a sample of the host's tasks and judges it.
func (p *Probe) Observe(context.Context) probes.Observation {
	s, err := readSample(p.host)
	if p.known = err == nil; !p.known {
		return probes.UnknownBecause(probes.PIDPressure, err)
	}
	p.newest = s
	return p.thresholds.judge(s)
}

var _ probes.Measurer = (*Probe)(nil)

// Measures appends how many tasks are free of the limit.
func (p *Probe) Measures(all []probes.Measure) []probes.Measure {
	if !p.known {
		return all
	}
	t, limit := &p.thresholds, float64(p.newest.limit)
	enough, _ := t.enough(limit)
	free := probes.Measure{Name: "free_tasks", Unit: probes.Items, Value: p.newest.free(), Degraded: enough.Amount, Clear: enough.Clear}
	if t.CriticalUsedPercent > 0 {
		free.Critical = freeAt(t.CriticalUsedPercent, limit)
	}
	return append(all, free, probes.Measure{Name: "task_limit", Unit: probes.Items, Value: limit})
}
