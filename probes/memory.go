package probes

import (
	"context"
	"slices"
	"time"
)

// MemoryThresholds say when memory is scarce. No noisy measure does so alone:
// the level of available memory is enough, but how fast it falls and how long
// tasks wait for it count only together with a level. A threshold of 0 asks for
// nothing.
//
// Available is what the kernel says programs can have without swapping
// (MemAvailable) and what the ZFS cache would give back. Percentages of it are
// of available + AnonPages: of what programs have and could have. Unlike
// MemTotal that does not hold what the kernel or huge pages have taken, so that
// the same percentage means the same on every host.
type MemoryThresholds struct {
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

// Memory watches a host's available memory, how fast it goes, and how long
// tasks wait for it. It is never certain from one look: page cache comes and
// goes.
type Memory struct {
	*trigger

	host       Host
	thresholds MemoryThresholds
	last       memLook
	trend      slope // of what is left: available memory and swap
}

// memLook is a sample and when it was taken.
type memLook struct {
	sample memSample
	at     time.Time
}

var _ Probe = (*Memory)(nil)

// wakeStalledPercent is the share of a window, in percent, that some task must
// have waited for memory to wake the probe. It is half of what makes a host
// Degraded by default, so that a stall is looked at while it grows.
const wakeStalledPercent = 7.5

// NewMemory returns the probe of the host's memory; it reads meminfo and, where
// they are, pressure/memory, swaps and spl/kstat/zfs/arcstats in h.Proc.
func NewMemory(h Host, t MemoryThresholds) *Memory {
	return &Memory{trigger: newTrigger(h, "memory", wakeStalledPercent), host: h, thresholds: t}
}

// Condition is MemoryPressure.
func (*Memory) Condition() Condition { return MemoryPressure }

// Observe reads the host's memory and judges it. The first look, and one after
// a gap of more than 30 s, judges by the level alone.
func (m *Memory) Observe(ctx context.Context) Observation {
	sample, err := readMemory(ctx, m.host)
	if err != nil {
		return unknownBecause(MemoryPressure, err)
	}
	return m.follow(memLook{sample, time.Now()})
}

// follow judges a look by those before it.
func (m *Memory) follow(now memLook) Observation {
	m.trend.add(now.at, now.sample.left())
	o := m.thresholds.judge(m.last.sample, now.sample, now.at.Sub(m.last.at), m.trend)
	m.last = now
	return o
}

// memSample is what one look at the host's memory found, in bytes.
type memSample struct {
	available uint64 // MemAvailable, and arc
	anon      uint64 // AnonPages: what programs hold that has no file behind it
	arc       uint64 // what the ZFS cache would give back
	freeSwap  uint64 // free swap outside of memory
	pressure  pressure
	measured  bool // the kernel measures pressure
}

// left is what can still be taken before somebody has to die. Swap does not
// make memory plentiful, but a host that swaps is not yet out of it.
func (s memSample) left() float64 { return float64(s.available) + float64(s.freeSwap) }

// judge says what a sample means, given the one before it, the time between
// them and the trend of what is left. The samples are such as readMemory let
// pass; a time that is no time between two looks makes it judge cur without
// prev.
//
// Severity is that of the worst cause. A combination is as severe as the milder
// of its two measures, so that 50 takes both.
func (t MemoryThresholds) judge(prev, cur memSample, dt time.Duration, trend slope) Observation {
	v := view(prev, cur, dt, trend)
	causes := t.causes(v)
	o := Observation{Condition: MemoryPressure, Level: OK, Reason: "MemorySufficient"}
	told := causes[byLevel]
	for _, cause := range slices.Backward(causes[:]) { // the gravest has the last word
		o.Severity = max(o.Severity, cause.severity)
		switch {
		case cause.set:
			o.Level, o.Hysteresis, o.Reason, told = cause.level, false, cause.reason, cause
		case cause.near && o.Level == OK:
			o.Hysteresis, o.Reason, told = true, "MemoryNearThreshold", cause
		}
	}
	o.Message = v.text(told.limit) + told.text
	return o
}

// memCause is a reason to call memory scarce.
type memCause struct {
	signal

	level  Level
	reason string
	limit  memLimit // of available memory
	text   string   // about what else was measured
}

// byLevel is the place, among the causes, of the one that needs no second
// measure.
const byLevel = 1

// causes compares all that was seen, the gravest first.
func (t MemoryThresholds) causes(v memView) [4]memCause {
	whole := v.whole()
	enough, emptying, stalled := t.enough(whole), t.part(t.RunningOutAvailablePercent, whole), t.part(t.StalledAvailablePercent, whole)
	below := func(limit memLimit) signal { return scarce(v.available(), limit.bytes, t.ClearFactor).signal() }
	soonEmpty := scarce(v.emptyIn.Seconds(), t.RunningOutWithin.Seconds(), t.ClearFactor).signal()
	someWait, allWait := excess(v.stall.some, t.StalledPercent, t.ClearFactor), excess(v.stall.full, t.CriticalStalledPercent, t.ClearFactor)
	return [...]memCause{
		{both(below(enough), allWait), Critical, "MemoryStalledFully", enough,
			v.fullText() + ", threshold " + percentText(t.CriticalStalledPercent)},
		byLevel: {below(enough), Degraded, "MemoryLow", enough,
			v.stallText()},
		{both(below(emptying), soonEmpty), Degraded, "MemoryRunningOut", emptying,
			v.emptyText() + ", threshold " + secondsText(t.RunningOutWithin)},
		{both(below(stalled), someWait), Degraded, "MemoryStalled", stalled,
			v.stallText() + ", threshold " + percentText(t.StalledPercent)},
	}
}

// memLimit is an amount of available memory to compare with, and how to write
// it.
type memLimit struct {
	bytes float64
	text  string
}

// enough is the amount of available memory below which the host is Degraded.
func (t MemoryThresholds) enough(whole float64) memLimit {
	share := t.part(t.AvailablePercent, whole)
	if atLeast := float64(t.AvailableBytes); atLeast > share.bytes {
		return memLimit{atLeast, bytesText(atLeast)}
	}
	return share
}

// part is a percentage of the whole, or of as much of it as counts.
func (t MemoryThresholds) part(percent, whole float64) memLimit {
	if most := float64(t.PercentOfAtMost); most > 0 && whole > most {
		bytes := most * percent / 100
		return memLimit{bytes, bytesText(bytes)}
	}
	return memLimit{whole * percent / 100, percentText(percent)}
}
