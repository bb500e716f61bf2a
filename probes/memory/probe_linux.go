package memory

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
	"github.com/taintlet/taintlet/probes/pressure"
	"github.com/taintlet/taintlet/probes/trend"
)

// Probe watches a host's available memory, and how long tasks wait for it. It is
// never certain from one sample, because page cache comes and goes.
type Probe struct {
	*pressure.Trigger

	host       probes.Host
	thresholds Thresholds
	before     past
	// plausiblePace is that of this host.
	plausiblePace float64
	newest        view // zero: it could not be read
	// isOfKernel says that meminfo is the kernel's own. It is not where LXCFS shows that of a
	// container, and then what the kernel says elsewhere is of another memory.
	isOfKernel func() bool
}

// wakeStalledPercent is the percentage of a window for which some task must have
// waited for memory to wake the probe. It is half of the default StalledPercent,
// so that the probe takes samples while a stall grows.
const wakeStalledPercent = 7.5

// New returns the probe of the host's memory. It reads meminfo and, where there
// are such files, pressure/memory, vmstat and spl/kstat/zfs/arcstats in
// h.Proc, and the counts of huge pages in h.Sys.
func New(h probes.Host, t Thresholds) *Probe {
	return &Probe{
		Trigger: pressure.NewTrigger(h, "memory", wakeStalledPercent),
		host:    h, thresholds: t, plausiblePace: plausiblePace(runtime.NumCPU()),
		isOfKernel: sync.OnceValue(func() bool { return !hostfile.IsMountPoint(h.Proc, "meminfo") }),
	}
}

// Condition returns MemoryPressure.
func (*Probe) Condition() probes.Condition { return probes.MemoryPressure }

// Observe takes a sample of the host's memory and judges it. The first sample,
// and one after a gap of more than 30 s, is judged by the level of available
// memory alone.
func (p *Probe) Observe(ctx context.Context) probes.Observation {
	began := time.Now()
	s, err := p.readSample(ctx, p.before.newest())
	if err != nil {
		p.newest = view{}
		return probes.UnknownBecause(probes.MemoryPressure, err)
	}
	s.at = time.Now()
	s.took = s.at.Sub(began)
	return p.follow(s)
}

// follow judges a sample by those before it.
func (p *Probe) follow(now sample) probes.Observation {
	p.before = p.before.comparable(now)
	p.newest = viewOf(p.before, now)
	o := p.thresholds.judge(p.newest)
	p.before = p.before.add(now)
	if o.Level == probes.OK {
		enough := p.thresholds.enough(now.whole())
		o.Headroom = trend.Headroom(float64(now.available)-enough.Amount, p.plausiblePace)
	}
	return o
}

// plausiblePace is how many bytes a second a host's programs take at most, which may be exceeded
// twofold before a sample comes late. Measured with pages of 4 KiB on two CPUs of 2026:
// one process alone touched 5.7 GiB a second, two at a time 2.7 to 3.1 GiB each.
// With more CPUs the memory becomes the limit, and the lock of its zone.
func plausiblePace(cpus int) float64 {
	const gib = 1 << 30
	return min(16*gib, max(6*gib, float64(cpus)*3*gib))
}

var _ probes.Measurer = (*Probe)(nil)

// Measures appends the available memory of the newest sample and, where they are known, its stalls.
func (p *Probe) Measures(all []probes.Measure) []probes.Measure {
	v, t := &p.newest, &p.thresholds
	if v.whole() == 0 { // the newest sample could not be read
		return all
	}
	factor := max(1, t.ClearFactor)
	enough := t.enough(v.whole())
	all = append(all,
		probes.Measure{Name: "available", Unit: probes.Bytes, Value: float64(v.available), Degraded: enough.Amount, Clear: enough.Clear},
		probes.Measure{Name: "total", Unit: probes.Bytes, Value: v.whole()})
	if v.some.over > 0 {
		all = append(all, probes.Measure{
			Name: "stalled", Unit: probes.Ratio, Value: v.some.counts / 100,
			Degraded: t.StalledPercent / 100, Clear: t.StalledPercent / factor / 100,
		})
	}
	if v.full.over > 0 {
		all = append(all, probes.Measure{
			Name: "stalled_fully", Unit: probes.Ratio, Value: v.full.counts / 100, Critical: t.CriticalStalledPercent / 100,
		})
	}
	return all
}
