package memory

import (
	"cmp"
	"slices"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
)

// judge says what a sample means, compared with those before it. What is not known
// of the view does not count.
//
// Severity is that of the worst cause. A combination of two measures is as
// severe as the milder one, so that it reaches 50 only if both do.
func (t Thresholds) judge(v view) probes.Observation {
	causes := t.causes(v)
	o := probes.Observation{Condition: probes.MemoryPressure, Level: probes.OK, Reason: "MemorySufficient"}
	shown := causes[byLevel]
	for i, c := range slices.Backward(causes[:]) { // the gravest last, so that it decides
		o.Severity = max(o.Severity, c.Severity)
		switch {
		case c.Set:
			o.Forecast = i == byForecast && o.Level == probes.OK
			o.Level, o.Hysteresis, o.Reason, shown = c.level, false, c.reason, c
		case c.Near && o.Level == probes.OK:
			o.Hysteresis, o.Reason, shown = true, "MemoryNearThreshold", c
		}
	}
	o.Message, o.Clears = cmp.Or(shown.measured, v.text(shown.limit.text()))+shown.text, "above "+shown.limit.clearText()+shown.clears
	return o
}

// cause is a reason to call memory scarce.
type cause struct {
	trend.Signal

	level    probes.Level
	reason   string
	limit    bound  // of available memory
	text     string // about the other measure
	clears   string // what that one has to be instead
	measured string // what is compared with limit; empty: the available memory of the host
}

// These are the indices of two causes: available memory alone, and the forecast.
const byLevel, byForecast = 1, 3

// causes returns all causes, the gravest first.
func (t Thresholds) causes(v view) [5]cause {
	whole := v.whole()
	enough, emptying, stalled := t.enough(whole), t.part(t.RunningOutAvailablePercent, whole), t.part(t.StalledAvailablePercent, whole)
	soonEmpty := trend.Scarce(v.emptyIn.Seconds(), t.RunningOutWithin.Seconds(), t.ClearFactor).Signal()
	someWait, allWait := trend.Excess(v.some.counts, t.StalledPercent, t.ClearFactor), trend.Excess(v.full.counts, t.CriticalStalledPercent, t.ClearFactor)
	return [...]cause{
		{trend.Both(enough.compare(v.available), allWait), probes.Critical, "MemoryStalledFully", enough,
			v.fullText() + ", threshold " + trend.PercentText(t.CriticalStalledPercent), "", ""},
		byLevel: {enough.compare(v.available), probes.Degraded, "MemoryLow", enough,
			v.someText(), "", ""},
		t.podsCause(v.pods),
		byForecast: {trend.Both(emptying.compare(v.available), soonEmpty), probes.Degraded, "MemoryRunningOut", emptying,
			v.emptyText() + ", threshold " + trend.SecondsText(t.RunningOutWithin), ", or lasts longer", ""},
		{trend.Both(stalled.compare(v.available), someWait), probes.Degraded, "MemoryStalled", stalled,
			v.someText() + ", threshold " + trend.PercentText(t.StalledPercent), ", or stalls less", ""},
	}
}

// podsCause is that all pods together have little left of their limit. AvailableBytes
// is the only threshold: pods that fit their limit closely and stay within it are the
// work of a good scheduler, not trouble. It is the threshold of the kubelet, which
// evicts pods then.
func (t Thresholds) podsCause(pods allocatable) cause {
	if pods.limit == 0 {
		return cause{}
	}
	available, limit := float64(pods.available), float64(pods.limit)
	floor := t.floor(limit)
	return cause{
		Signal: floor.compare(pods.available), level: probes.Degraded, reason: "AllocatableMemoryLow", limit: floor,
		measured: "left to all pods " + trend.BytesText(available) + " of their limit of " + trend.BytesText(limit) +
			" (" + trend.ShareText(available, limit) + "), threshold " + floor.text(),
		clears: " left to all pods",
	}
}

// bound is an amount of available memory to compare with.
type bound struct {
	bytes       float64
	clearFactor float64 // times as much clears
	// isPercent is whether texts show percent instead of bytes.
	isPercent bool
	percent   float64
}

// clear returns the amount that clears, in bytes.
func (b bound) clear() float64 { return b.bytes * b.clearFactor }

// compare compares available memory, in bytes, with the bound.
func (b bound) compare(available uint64) trend.Signal {
	return trend.Scarce(float64(available), b.bytes, b.clearFactor).Signal()
}

func (b bound) text() string {
	if b.isPercent {
		return trend.PercentText(b.percent)
	}
	return trend.BytesText(b.bytes)
}

// clearText is the text of the amount that clears.
func (b bound) clearText() string {
	if b.isPercent {
		return trend.TimesText(b.percent, b.clearFactor)
	}
	return trend.BytesText(b.clear())
}

// enough returns the available memory below which the host is Degraded.
func (t Thresholds) enough(whole float64) bound {
	part := t.part(t.AvailablePercent, whole)
	if float64(t.AvailableBytes) > part.bytes {
		return t.floor(whole)
	}
	return part
}

// floorMarginPercent is by how much of the whole, in percent, the amount that clears
// may be more than AvailableBytes. On a small host ClearFactor times as much may be
// more than is ever available. One of 480 MiB had 130 MiB when idle.
const floorMarginPercent = 5

// floor returns AvailableBytes.
func (t Thresholds) floor(whole float64) bound {
	b := bound{bytes: float64(t.AvailableBytes), clearFactor: max(1, t.ClearFactor)}
	if b.bytes > 0 {
		b.clearFactor = min(b.clearFactor, 1+whole*floorMarginPercent/100/b.bytes)
	}
	return b
}

// part returns a percentage of the whole, or of PercentBaseMax where that is less.
func (t Thresholds) part(percent, whole float64) bound {
	b := bound{clearFactor: max(1, t.ClearFactor), isPercent: true, percent: percent}
	if most := float64(t.PercentBaseMax); most > 0 && whole > most {
		whole, b.isPercent = most, false
	}
	b.bytes = whole * percent / 100
	return b
}
