// Package memory is the probe of MemoryPressure.
package memory

import (
	"context"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/pressure"
	"github.com/taintlet/taintlet/probes/trend"
)

// Thresholds say when memory is scarce. No noisy measure does so alone:
// the level of available memory is enough, but how fast it falls and how long
// tasks wait for it count only together with a level. A threshold of 0 asks for
// nothing.
//
// Available is what the kernel says programs can have without swapping
// (MemAvailable) and what the ZFS cache would give back. Percentages of it are
// of available + AnonPages: of what programs have and could have. Unlike
// MemTotal that does not hold what the kernel or huge pages have taken, so that
// the same percentage means the same on every host.
type Thresholds struct {
	// AvailablePercent is the share of available memory, in percent (0 to
	// 100), below which the host is Degraded.
	AvailablePercent float64
	// AvailableBytes is the available memory, in bytes, below which the host is
	// Degraded, where it is more than AvailablePercent. It is taken as it is on
	// any host: one with less memory than this is always Degraded.
	AvailableBytes uint64
	// PercentOfAtMost is the most memory, in bytes, that the three percentages
	// of available memory are taken of; 0: no bound. A share is meant to leave
	// time until nothing is left, and on a host of 4 TiB, 5 % of all would call
	// 200 GiB too little.
	PercentOfAtMost uint64

	// RunningOutWithin and RunningOutAvailablePercent: Degraded when, as it
	// goes, nothing is left in less than this time (above 0), and the share of
	// available memory is below this, in percent (0 to 100). Swap outside of
	// memory has to run out as well.
	RunningOutWithin           time.Duration
	RunningOutAvailablePercent float64

	// StalledPercent and StalledAvailablePercent: Degraded when some task
	// waited for memory for at least this share of the time since the last
	// look, in percent (0 to 100), and the share of available memory is below
	// this, in percent (0 to 100). Tasks wait for memory also when their own
	// control group is full and the host is not: hence the second of the two.
	StalledPercent          float64
	StalledAvailablePercent float64
	// CriticalStalledPercent is the share of the time since the last look, in
	// percent (0 to 100), in which all tasks that had something to do waited
	// for memory, from which on a host whose available memory is below
	// AvailablePercent or AvailableBytes is Critical.
	CriticalStalledPercent float64

	// ClearFactor is how much easier the threshold is that clears. Before
	// memory counts as plentiful again, ClearFactor times the threshold must be
	// available; of the two measures of a combination one must be better than
	// its own threshold by this factor. 1 or more; less counts as 1.
	ClearFactor float64
}

// Probe watches a host's available memory, how fast it goes, and how long
// tasks wait for it. It is never certain from one look: page cache comes and
// goes.
type Probe struct {
	*pressure.Trigger

	host       probes.Host
	thresholds Thresholds
	last       timedSample
	slope      trend.Slope // of what is left: available memory and swap
}

// timedSample is a sample and when it was taken.
type timedSample struct {
	sample sample
	at     time.Time
}

var _ probes.Probe = (*Probe)(nil)

// wakeStalledPercent is the share of a window, in percent, that some task must
// have waited for memory to wake the probe. It is half of what makes a host
// Degraded by default, so that a stall is looked at while it grows.
const wakeStalledPercent = 7.5

// New returns the probe of the host's memory; it reads meminfo and, where
// they are, pressure/memory, swaps and spl/kstat/zfs/arcstats in h.Proc.
func New(h probes.Host, t Thresholds) *Probe {
	return &Probe{Trigger: pressure.NewTrigger(h, "memory", wakeStalledPercent), host: h, thresholds: t}
}

// Condition is MemoryPressure.
func (*Probe) Condition() probes.Condition { return probes.MemoryPressure }

// Observe reads the host's memory and judges it. The first look, and one after
// a gap of more than 30 s, judges by the level alone.
func (m *Probe) Observe(ctx context.Context) probes.Observation {
	sample, err := readSample(ctx, m.host)
	if err != nil {
		return probes.UnknownBecause(probes.MemoryPressure, err)
	}
	return m.follow(timedSample{sample, time.Now()})
}

// follow judges a look by those before it.
func (m *Probe) follow(now timedSample) probes.Observation {
	m.slope.Add(now.at, now.sample.left())
	o := m.thresholds.judge(m.last.sample, now.sample, now.at.Sub(m.last.at), m.slope)
	m.last = now
	return o
}
