// Package memory is the probe of MemoryPressure. It samples available memory, and how
// long tasks wait for memory.
package memory

import (
	"slices"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
)

// Thresholds say when memory is scarce. Little available memory is enough. How long
// tasks wait for it is noisy, and counts only when available memory is below a level as
// well. A threshold of 0 is off.
//
// Available memory is the kernel's estimate of what programs can get without swapping
// (MemAvailable), and the evictable part of the ZFS cache. Percentages are taken of all memory but
// huge pages (see meminfo.ordinary), so that they mean the same on every host.
type Thresholds struct {
	// AvailablePercent is the share of available memory, in percent (0 to
	// 100), below which the host is Degraded.
	AvailablePercent float64
	// AvailableBytes is the available memory, in bytes, below which the host is
	// Degraded, where that is more than AvailablePercent. It is the same on every
	// host: one with less memory than this is always Degraded.
	AvailableBytes uint64
	// EarlyPercent is the share of available memory, in percent (0 to 100), by which the severity
	// of samples that are OK is computed: see trend.Limit. 0: by all causes.
	EarlyPercent float64

	// StalledPercent and StalledAvailablePercent (0 to 100): Degraded when some
	// task waited for memory for at least the first percentage of the time, and the
	// share of available memory is below the second. The time is the last 2 s, or
	// that since the last sample where it is longer. Stalls count only as far as
	// the host's own reclaims account for them, because tasks also wait when their
	// own control group is full and the host is not.
	StalledPercent          float64
	StalledAvailablePercent float64
	// CriticalStalledPercent (0 to 100): Critical if all runnable tasks waited for memory for at
	// least this percentage of the last 10 s, and available memory is below AvailablePercent or
	// AvailableBytes. These stalls also count only as far as the host itself reclaims memory.
	CriticalStalledPercent float64

	// ClearFactor is how much easier the threshold is that clears. ClearFactor
	// times the threshold must be available before memory is sufficient again, or
	// AvailableBytes and 5 % of the memory where that is less. Of the two measures
	// of a combination, one must be better than its own threshold by this factor.
	// 1 or more; less counts as 1.
	ClearFactor float64
}

// judge says what a sample means, compared with those before it. What is not known
// of the view does not count.
//
// Severity is that of the worst cause. A combination of two measures is as
// severe as the milder one, so that it reaches 50 only if both do.
func (t Thresholds) judge(v view) probes.Observation {
	causes := t.causes(v)
	o := probes.Observation{Condition: probes.MemoryPressure, Level: probes.OK, Reason: "MemorySufficient"}
	shown := causes[byLevel]
	for _, c := range slices.Backward(causes[:]) { // the gravest last, so that it decides
		o.Severity = max(o.Severity, c.Severity)
		switch {
		case c.Set:
			o.Level, o.Hysteresis, o.Reason, shown = c.level, false, c.reason, c
		case c.Near && o.Level == probes.OK:
			o.Hysteresis, o.Reason, shown = true, "MemoryNearThreshold", c
		}
	}
	if o.Level == probes.OK && t.EarlyPercent > 0 {
		o.Severity = causes[byLevel].limit.Early(float64(v.available), t.part(t.EarlyPercent, v.whole()).Amount)
	}
	if v.unread != nil && o.Level == probes.OK && t.part(t.StalledAvailablePercent, v.whole()).Signal(float64(v.available)).Near {
		o.Hysteresis, o.Reason = true, "MemoryNearThreshold" // a taint may have been set for stalls
	}
	o.Message, o.Clears = v.text(shown.limit)+shown.text, "above "+shown.limit.ClearText()+shown.clears
	if v.unread != nil {
		o.Message += "; unknown: " + v.unread.Error()
	}
	return o
}

// cause is a reason to call memory scarce.
type cause struct {
	trend.Signal

	level  probes.Level
	reason string
	limit  trend.Limit // of available memory
	text   string      // about the other measure
	clears string      // what that one has to be instead
}

// byLevel is the index of the cause that is available memory alone.
const byLevel = 1

// causes returns all causes, the gravest first.
func (t Thresholds) causes(v view) [3]cause {
	whole, available := v.whole(), float64(v.available)
	enough, stalled := t.enough(whole), t.part(t.StalledAvailablePercent, whole)
	someWait, allWait := trend.Excess(v.some.counts, t.StalledPercent, t.ClearFactor), trend.Excess(v.full.counts, t.CriticalStalledPercent, t.ClearFactor)
	besides := ""
	if t.StalledPercent > 0 && v.some.percent >= t.StalledPercent {
		besides = v.some.text("; stalled ") // why these stalls do not decide
	}
	return [...]cause{
		{trend.Both(enough.Signal(available), allWait), probes.Critical, "MemoryStalledFully", enough,
			v.full.text("; all tasks stalled ") + ", threshold " + trend.PercentText(t.CriticalStalledPercent), ""},
		byLevel: {enough.Signal(available), probes.Degraded, "MemoryLow", enough, besides, ""},
		{trend.Both(stalled.Signal(available), someWait), probes.Degraded, "MemoryStalled", stalled,
			v.some.text("; stalled ") + ", threshold " + trend.PercentText(t.StalledPercent), ", or stalls less"},
	}
}

// floorMarginPercent is by how much of the whole, in percent, the amount that clears
// may be more than AvailableBytes. On a small host ClearFactor times as much may be
// more than is ever available. One of 480 MiB had 130 MiB when idle.
const floorMarginPercent = 5

// enough returns the available memory below which the host is Degraded.
func (t Thresholds) enough(whole float64) trend.Limit {
	part, floor := t.part(t.AvailablePercent, whole), float64(t.AvailableBytes)
	if floor > part.Amount {
		return trend.Limit{Amount: floor, Clear: min(floor*max(1, t.ClearFactor), floor+whole*floorMarginPercent/100)}
	}
	return part
}

// percentBaseMax caps, in bytes, the memory that percentages are taken of. A percentage
// is meant to leave time before memory runs out, and 5 % of 4 TiB would be 200 GiB.
const percentBaseMax = 256 << 30

// part returns a percentage of the whole, or of percentBaseMax where that is less.
func (t Thresholds) part(percent, whole float64) trend.Limit {
	return trend.Part(percent, whole, percentBaseMax, t.ClearFactor, probes.Bytes)
}
