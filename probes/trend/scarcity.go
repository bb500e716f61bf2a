// Package trend measures quantities: how scarce one is, how soon it can be used up, and
// how to write it for a person.
package trend

import (
	"math"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// Scarcity is a quantity of which there can be too little. All three numbers
// have the same unit.
type Scarcity struct {
	available float64
	threshold float64 // Degraded below it; 0: never
	clear     float64 // OK without hysteresis from here on; has no effect below threshold
}

// Scarce returns the Scarcity of an available amount. It clears at clearFactor times the
// threshold. A factor below 1 counts as 1.
func Scarce(available, threshold, clearFactor float64) Scarcity {
	return Scarcity{available: available, threshold: threshold, clear: threshold * clearFactor}
}

// severity is 0 at the threshold that clears, rises linearly to 50 at the threshold that sets, and
// from there linearly to 100 when nothing is left. It is rounded down, so that it reaches 50 at the
// threshold and not before.
func (s Scarcity) severity() int {
	switch {
	case s.threshold <= 0 || s.available > s.threshold && s.available >= s.clear:
		return 0
	case s.available > s.threshold:
		return int(50 * ((s.clear - s.available) / (s.clear - s.threshold)))
	default:
		return 50 + int(50*((s.threshold-max(0, s.available))/s.threshold))
	}
}

// EarlySeverity is the severity of a sample that is OK and exactly at an early threshold.
const EarlySeverity = 25

// Early returns the severity of a quantity that is not below its threshold, if an early threshold
// is set. It is 0 from 1.5 times the early threshold, EarlySeverity at the early threshold, and 49
// just above the threshold.
func (s Scarcity) Early(early float64) int {
	switch far := 1.5 * early; {
	case s.available >= far:
		return 0
	case s.available >= early:
		return int(EarlySeverity * ((far - s.available) / (far - early)))
	default:
		return EarlySeverity + int((49-EarlySeverity)*((early-s.available)/(early-s.threshold)))
	}
}

// Tightness compares scarcities of different units. It is 1 at the threshold,
// and the smaller the less is available.
func (s Scarcity) Tightness() float64 {
	if s.threshold <= 0 {
		return math.Inf(1)
	}
	return s.available / s.threshold
}

// Observe returns the Observation that the scarcity makes. Its reason is the
// thing, in CamelCase, with Low, NearThreshold or Sufficient behind it.
func (s Scarcity) Observe(c probes.Condition, thing, message string) probes.Observation {
	o := probes.Observation{Condition: c, Level: probes.OK, Severity: s.severity(), Reason: thing + "Sufficient", Message: message}
	switch {
	case s.available < s.threshold:
		o.Level, o.Reason = probes.Degraded, thing+"Low"
	case s.available < s.clear:
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

// Signal returns what is available, compared with its threshold.
func (s Scarcity) Signal() Signal {
	set := s.available < s.threshold
	return Signal{s.severity(), set, set || s.available < s.clear}
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
