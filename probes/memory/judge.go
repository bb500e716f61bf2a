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
	told := causes[byLevel]
	for i, c := range slices.Backward(causes[:]) { // the gravest last, so that it decides
		o.Severity = max(o.Severity, c.Severity)
		switch {
		case c.Set:
			o.Forecast = i == byForecast && o.Level == probes.OK
			o.Level, o.Hysteresis, o.Reason, told = c.level, false, c.reason, c
		case c.Near && o.Level == probes.OK:
			o.Hysteresis, o.Reason, told = true, "MemoryNearThreshold", c
		}
	}
	o.Message, o.Clears = cmp.Or(told.measured, v.text(told.limit))+told.text, "above "+told.limit.clears+told.clears
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

// These are the indices of the cause that is available memory alone, and of the
// one that is a forecast.
const byLevel, byForecast = 1, 3

// causes returns all causes, the gravest first.
func (t Thresholds) causes(v view) [5]cause {
	whole := v.whole()
	enough, emptying, stalled := t.enough(whole), t.part(t.RunningOutAvailablePercent, whole), t.part(t.StalledAvailablePercent, whole)
	below := func(limit bound) trend.Signal {
		return trend.Scarce(float64(v.available), limit.bytes, limit.clearFactor).Signal()
	}
	soonEmpty := trend.Scarce(v.emptyIn.Seconds(), t.RunningOutWithin.Seconds(), t.ClearFactor).Signal()
	someWait, allWait := trend.Excess(v.some.counts, t.StalledPercent, t.ClearFactor), trend.Excess(v.full.counts, t.CriticalStalledPercent, t.ClearFactor)
	return [...]cause{
		{trend.Both(below(enough), allWait), probes.Critical, "MemoryStalledFully", enough,
			v.fullText() + ", threshold " + trend.PercentText(t.CriticalStalledPercent), "", ""},
		byLevel: {below(enough), probes.Degraded, "MemoryLow", enough,
			v.someText(), "", ""},
		t.podsCause(v.pods),
		byForecast: {trend.Both(below(emptying), soonEmpty), probes.Degraded, "MemoryRunningOut", emptying,
			v.emptyText() + ", threshold " + trend.SecondsText(t.RunningOutWithin), ", or lasts longer", ""},
		{trend.Both(below(stalled), someWait), probes.Degraded, "MemoryStalled", stalled,
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
	bytes, factor := t.floor(limit)
	b := bound{bytes, factor, trend.BytesText(bytes), trend.BytesText(bytes * factor)}
	return cause{
		Signal: trend.Scarce(available, bytes, factor).Signal(), level: probes.Degraded, reason: "AllocatableMemoryLow", limit: b,
		measured: "left to all pods " + trend.BytesText(available) + " of their limit of " + trend.BytesText(limit) +
			" (" + trend.ShareText(available, limit) + "), threshold " + b.text,
		clears: " left to all pods",
	}
}

// bound is an amount of available memory to compare with, and its text.
type bound struct {
	bytes       float64
	clearFactor float64 // times as much clears
	text        string
	clears      string // the text of that
}

// enough returns the available memory below which the host is Degraded.
func (t Thresholds) enough(whole float64) bound {
	if bytes, factor := t.enoughBytes(whole); bytes > t.partBytes(t.AvailablePercent, whole) {
		return bound{bytes, factor, trend.BytesText(bytes), trend.BytesText(bytes * factor)}
	}
	return t.part(t.AvailablePercent, whole)
}

// floorMarginPercent is by how much of the whole, in percent, the amount that clears
// may be more than AvailableBytes. On a small host ClearFactor times as much may be
// more than is ever available. One of 480 MiB had 130 MiB when idle.
const floorMarginPercent = 5

// enoughBytes is enough without its texts.
func (t Thresholds) enoughBytes(whole float64) (bytes, clearFactor float64) {
	bytes, clearFactor = t.partBytes(t.AvailablePercent, whole), max(1, t.ClearFactor)
	if float64(t.AvailableBytes) > bytes {
		return t.floor(whole)
	}
	return bytes, clearFactor
}

// floor returns AvailableBytes, and how many times as much clears.
func (t Thresholds) floor(whole float64) (bytes, clearFactor float64) {
	bytes, clearFactor = float64(t.AvailableBytes), max(1, t.ClearFactor)
	if bytes > 0 {
		clearFactor = min(clearFactor, 1+whole*floorMarginPercent/100/bytes)
	}
	return bytes, clearFactor
}

// part returns a percentage of the whole, or of PercentBaseMax where that is
// less.
func (t Thresholds) part(percent, whole float64) bound {
	bytes, factor := t.partBytes(percent, whole), max(1, t.ClearFactor)
	if t.isCapped(whole) {
		return bound{bytes, factor, trend.BytesText(bytes), trend.BytesText(bytes * factor)}
	}
	return bound{bytes, factor, trend.PercentText(percent), trend.TimesText(percent, factor)}
}

// partBytes is part without its texts.
func (t Thresholds) partBytes(percent, whole float64) float64 {
	if t.isCapped(whole) {
		whole = float64(t.PercentBaseMax)
	}
	return whole * percent / 100
}

// isCapped reports whether percentages are taken of PercentBaseMax.
func (t Thresholds) isCapped(whole float64) bool {
	return t.PercentBaseMax > 0 && whole > float64(t.PercentBaseMax)
}
