// Package memory is the probe of MemoryPressure. It samples available memory,
// how fast that falls, and how long tasks wait for memory.
package memory

import (
	"context"
	"runtime"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/pressure"
	"github.com/taintlet/taintlet/probes/trend"
)

// Thresholds say when memory is scarce. Little available memory is enough. How
// fast it falls and how long tasks wait for it are noisy, and count only when
// available memory is below a level as well. A threshold of 0 is off.
//
// Available memory is what the kernel says programs can have without swapping
// (MemAvailable), and what the ZFS cache would give back. Percentages are taken
// of all memory but huge pages (see meminfo.ordinary), so that they mean the same on
// every host.
type Thresholds struct {
	// AvailablePercent is the share of available memory, in percent (0 to
	// 100), below which the host is Degraded.
	AvailablePercent float64
	// AvailableBytes is the available memory, in bytes, below which the host is
	// Degraded, where that is more than AvailablePercent. It is the same on every
	// host: one with less memory than this is always Degraded. Where all pods together
	// have a limit, the host is Degraded when they have less than this left of it.
	AvailableBytes uint64
	// PercentBaseMax caps, in bytes, the memory that the three percentages of
	// available memory are taken of. 0: no cap. A percentage is meant to leave
	// time before memory runs out, and 5 % of 4 TiB would be 200 GiB.
	PercentBaseMax uint64

	// RunningOutWithin (above 0) and RunningOutAvailablePercent (0 to 100):
	// Degraded when, at the current rate, memory runs out within this time, and
	// the share of available memory is below this percentage. Swap outside of
	// memory has to run out as well.
	RunningOutWithin           time.Duration
	RunningOutAvailablePercent float64

	// StalledPercent and StalledAvailablePercent (0 to 100): Degraded when some
	// task waited for memory for at least this percentage of the last 2 s, or of
	// the time since the last sample where that is longer, and the share of
	// available memory is below the second percentage. Stalls count only as far as
	// the host's own reclaims account for them, because tasks also wait when their
	// own control group is full and the host is not.
	StalledPercent          float64
	StalledAvailablePercent float64
	// CriticalStalledPercent (0 to 100): Critical when all tasks that had
	// something to do waited for memory for at least this percentage of the last
	// 10 s, and available memory is below AvailablePercent or AvailableBytes. These
	// stalls count only as far as the host itself reclaims, too.
	CriticalStalledPercent float64

	// ClearFactor is how much easier the threshold is that clears. ClearFactor
	// times the threshold must be available before memory is sufficient again, or
	// AvailableBytes and 5 % of the memory where that is less. Of the two measures
	// of a combination, one must be better than its own threshold by this factor.
	// 1 or more; less counts as 1.
	ClearFactor float64
}

// Probe watches a host's available memory, how fast it falls, and how long tasks
// wait for it. It is never certain from one sample, because page cache comes and
// goes.
type Probe struct {
	*pressure.Trigger

	host       probes.Host
	thresholds Thresholds
	pods       podLimits
	before     past
	slope      trend.Slope // of what programs have not taken, memory and swap together
	pace       trend.Pace  // of available memory
	// plausiblePace is that of this host.
	plausiblePace float64
	newest        view // zero: it could not be read
}

var _ probes.Probe = (*Probe)(nil)

// wakeStalledPercent is the percentage of a window for which some task must have
// waited for memory to wake the probe. It is half of the default StalledPercent,
// so that the probe takes samples while a stall grows.
const wakeStalledPercent = 7.5

// New returns the probe of the host's memory. It reads meminfo and, where there
// are such files, pressure/memory, vmstat, swaps and spl/kstat/zfs/arcstats in
// h.Proc, and the memory of the pods' control group in h.Sys.
func New(h probes.Host, t Thresholds) *Probe {
	return &Probe{
		Trigger: pressure.NewTrigger(h, "memory", wakeStalledPercent),
		host:    h, thresholds: t, pods: newPodLimits(h), plausiblePace: plausiblePace(runtime.NumCPU()),
	}
}

// Condition returns MemoryPressure.
func (*Probe) Condition() probes.Condition { return probes.MemoryPressure }

// Observe takes a sample of the host's memory and judges it. The first sample,
// and one after a gap of more than 30 s, is judged by the level of available
// memory alone.
func (p *Probe) Observe(ctx context.Context) probes.Observation {
	began := time.Now()
	s, err := readSample(ctx, p.host, p.pods, p.before.newest())
	if err != nil {
		p.newest = view{}
		return probes.UnknownBecause(probes.MemoryPressure, err)
	}
	now := time.Now()
	s.took = now.Sub(began)
	return p.follow(timedSample{s, now})
}

// follow judges a sample by those before it.
func (p *Probe) follow(now timedSample) probes.Observation {
	p.slope.Add(now.at, now.sample.notTaken())
	p.before = p.before.comparable(now)
	p.newest = viewOf(p.before, now, p.slope)
	o := p.thresholds.judge(p.newest)
	p.before = p.before.add(now)
	p.pace.Add(now.at, float64(now.sample.available))
	if o.Level == probes.OK {
		enough := p.thresholds.enough(now.sample.whole())
		o.Headroom = p.pace.Headroom(float64(now.sample.available)-enough.bytes, p.plausiblePace)
	}
	return o
}

// plausiblePace is how many bytes a second a host's programs take at most before
// they are seen to take more. Measured with pages of 4 KiB on two CPUs of 2026:
// one process alone touched 5.7 GiB a second, two at a time 2.7 to 3.1 GiB each.
// With more CPUs the memory becomes the limit, and the lock of its zone.
func plausiblePace(cpus int) float64 {
	const gib = 1 << 30
	return min(16*gib, max(6*gib, float64(cpus)*3*gib))
}
