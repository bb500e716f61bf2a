// Package pid is the probe of PIDPressure.
package pid

import (
	"context"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
)

// Thresholds say when the host is short of task identifiers. Every thread
// takes one. A threshold of 0 asks for nothing.
type Thresholds struct {
	// UsedPercent is the share of the limit, in percent (above 0, up to 100),
	// at which the host is Degraded.
	UsedPercent float64
	// FreeTasks is the number of free tasks below which the host is Degraded,
	// where it is met first. More than a quarter of the limit counts as a
	// quarter: a small limit must not make a host Degraded for good.
	FreeTasks uint64
	// CriticalUsedPercent is the share of the limit, in percent (0 to 100), at
	// which the host is Critical.
	CriticalUsedPercent float64
	// RunningOutWithin and RunningOutUsedPercent: Degraded when, as it goes, no
	// task is left in less than this time, and at least this share of the
	// limit, in percent (0 to 100), is used. It is what a fork bomb looks like
	// before it has gone off.
	RunningOutWithin      time.Duration
	RunningOutUsedPercent float64
	// ClearFactor times the free tasks of the threshold must be free before
	// there are enough again. 1 or more; less counts as 1.
	ClearFactor float64
}

// Probe watches how many tasks (processes and their threads) the host has left,
// and how fast they go. Where pods have a limit of their own and it is tighter,
// that limit counts.
type Probe struct {
	probes.PeriodOnly

	host       probes.Host
	thresholds Thresholds
	slope      trend.Slope // of the free tasks
}

// New returns the probe of the host's tasks. It reads loadavg,
// sys/kernel/pid_max and sys/kernel/threads-max in h.Proc and, where it is
// seen, the pids limit of the pods' control group in h.Sys. It does not walk
// the processes.
func New(h probes.Host, t Thresholds) *Probe { return &Probe{host: h, thresholds: t} }

// Condition is PIDPressure.
func (*Probe) Condition() probes.Condition { return probes.PIDPressure }

// Observe counts tasks and judges.
func (p *Probe) Observe(context.Context) probes.Observation {
	sample, err := readSample(p.host)
	if err != nil {
		return probes.UnknownBecause(probes.PIDPressure, err)
	}
	return p.follow(sample, time.Now())
}

// follow judges a sample by those before it.
func (p *Probe) follow(s sample, now time.Time) probes.Observation {
	p.slope.Add(now, s.tightest().free())
	return p.thresholds.judge(s, p.slope)
}
