// Package trend measures quantities: how scarce one is, how soon it can be used up, and how to
// write it in messages.
package trend

import (
	"math"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// Limit is how much of a quantity is enough. All amounts have the same unit.
type Limit struct {
	// Amount is the threshold: Degraded below it. 0: never.
	Amount float64
	// Clear is the easier threshold: OK without hysteresis from here on. It has no effect below Amount.
	Clear float64

	isPercent       bool // texts show percent instead of amounts
	percent, factor float64
	unit            probes.Unit
}

// Part returns a percentage of the whole as a Limit, or of most where that is less. It clears at
// factor times the Amount. A factor below 1 counts as 1. Texts show a capped part as an amount.
func Part(percent, whole, most, factor float64, unit probes.Unit) Limit {
	amount := min(whole, most) * percent / 100
	return Limit{amount, amount * max(1, factor), whole <= most, percent, factor, unit}
}

// Texts writes an available amount and the limit for a reader who compares them.
func (l Limit) Texts(available float64) (availableText, limitText string) {
	availableText, limitText = BytesApart(available, l.Amount)
	if l.unit == probes.Items {
		availableText, limitText = ItemsText(available), ItemsText(l.Amount)
	} else if l.isPercent {
		availableText = BytesText(available)
	}
	if l.isPercent {
		limitText = PercentText(l.percent)
	}
	return availableText, limitText
}

// ClearText writes the threshold that clears.
func (l Limit) ClearText() string {
	switch {
	case l.isPercent:
		return TimesText(l.percent, l.factor)
	case l.unit == probes.Items:
		return ItemsText(l.Clear)
	}
	return BytesText(l.Clear)
}

// severity is 0 at the threshold that clears, rises linearly to 50 at the threshold that sets, and
// from there linearly to 100 when nothing is left. It is rounded down, so that it reaches 50 at the
// threshold and not before.
func (l Limit) severity(available float64) int {
	switch {
	case l.Amount <= 0 || available > l.Amount && available >= l.Clear:
		return 0
	case available > l.Amount:
		return int(50 * ((l.Clear - available) / (l.Clear - l.Amount)))
	default:
		return 50 + int(50*((l.Amount-max(0, available))/l.Amount))
	}
}

// EarlySeverity is the severity of a sample that is OK and exactly at an early threshold.
const EarlySeverity = 25

// Early returns the severity of a quantity that is not below its threshold, if an early threshold
// is set. It is 0 from 1.5 times the early threshold, EarlySeverity at the early threshold, and 49
// just above the threshold.
func (l Limit) Early(available, early float64) int {
	switch far := 1.5 * early; {
	case available >= far:
		return 0
	case available >= early:
		return int(EarlySeverity * ((far - available) / (far - early)))
	default:
		return EarlySeverity + int((49-EarlySeverity)*((early-available)/(early-l.Amount)))
	}
}

// Tightness compares amounts of different units with their limits. It is 1 at the threshold,
// and the smaller the less is available.
func (l Limit) Tightness(available float64) float64 {
	if l.Amount <= 0 {
		return math.Inf(1)
	}
	return available / l.Amount
}

// Observe returns the Observation that an available amount makes. Its reason is the
// thing, in CamelCase, with Low, NearThreshold or Sufficient behind it.
func (l Limit) Observe(available float64, c probes.Condition, thing, message string) probes.Observation {
	o := probes.Observation{Condition: c, Level: probes.OK, Severity: l.severity(available), Reason: thing + "Sufficient", Message: message}
	switch {
	case available < l.Amount:
		o.Level, o.Reason = probes.Degraded, thing+"Low"
	case available < l.Clear:
		o.Hysteresis, o.Reason = true, thing+"NearThreshold"
	}
	return o
}

// Headroom returns the least time in which the amount that is left can be gone at a rate, per
// second, that is plausible of any host. It is at least 1 ns, since 0 means that an Observation
// has none.
func Headroom(left, plausible float64) time.Duration {
	const longest = float64(math.MaxInt64) / float64(time.Second)
	seconds := max(0, left) / plausible
	if seconds >= longest {
		return math.MaxInt64
	}
	return max(1, time.Duration(seconds*float64(time.Second)))
}

// Signal is one measure compared with its threshold.
type Signal struct {
	Severity int  // 0 to 100, and 50 exactly at the threshold
	Set      bool // past the threshold
	Near     bool // not past the easier threshold that clears; true when set
}

// Both returns the signal of two measures that count only together. It is as
// severe as the milder of them.
func Both(a, b Signal) Signal {
	return Signal{min(a.Severity, b.Severity), a.Set && b.Set, a.Near && b.Near}
}

// Signal returns an available amount, compared with the limit.
func (l Limit) Signal(available float64) Signal {
	set := available < l.Amount
	return Signal{l.severity(available), set, set || available < l.Clear}
}

// Excess compares a percentage of which there can be too much with its
// threshold. A percentage that has reached the threshold is past it. A threshold
// of 0 is never reached. Severity rises linearly from 0 at 0 % to 50 at the
// threshold, and from there to 100 at 100 %. It clears below the threshold
// divided by clearFactor. A factor below 1 counts as 1.
func Excess(percent, threshold, clearFactor float64) Signal {
	switch {
	case threshold <= 0:
		return Signal{}
	case percent < threshold:
		return Signal{int(50 * (percent / threshold)), false, percent >= threshold/clearFactor}
	case threshold >= 100:
		return Signal{100, true, true}
	default:
		return Signal{50 + int(50*((percent-threshold)/(100-threshold))), true, true}
	}
}
