package decide

import (
	"math"
	"math/bits"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// flaps is how often the condition was set most recently, as damping counts it: the
// penalty just after the last set.
func (d Debouncer) flaps() int { return int(math.Round(d.Penalty)) }

// isDamped reports whether the condition clears later because it was set often.
func (d Debouncer) isDamped(c Debounce) bool {
	return d.flaps() > 1 && d.ClearAfter(c) > c.ClearAfter.Duration
}

// maxGap is the longest time between two samples that still belong together.
// After a longer one (the host slept, the agent was stopped) the window starts
// anew, and the gap counts neither as good nor as bad. It is longer than any
// period that the configuration allows.
const maxGap = 11 * time.Minute

// class is what one valid sample says about the condition.
type class uint8

const (
	none     class = iota
	clear          // OK, past the threshold that clears
	between        // OK, but not past the threshold that clears
	bad            // Degraded
	critical       // Critical
)

func classOf(o probes.Observation) class {
	switch {
	case o.Level == probes.Critical:
		return critical
	case o.Level == probes.Degraded:
		return bad
	case o.Level == probes.OK && o.Hysteresis:
		return between
	case o.Level == probes.OK:
		return clear
	}
	return none
}

// Debouncer is the state machine of one condition: how often it was bad
// most recently, for how long it has been good, and what follows from that.
// Level, Penalty and SetAt survive a restart. The rest is evidence that is
// collected anew, so that a restart never decides earlier.
type Debouncer struct {
	// Level is what was decided: OK, Degraded or Critical.
	Level probes.Level
	// Penalty counts the recent sets: one for each, halved every
	// PenaltyHalfLife. It is the value just after the last set.
	Penalty float64
	// SetAt is when the condition last went from OK to Degraded.
	SetAt time.Time

	window       uint32        // the last samples, newest in bit 0: 1 is bad
	certain      bool          // the newest sample needs no second one
	class        class         // of the newest valid sample
	held         time.Duration // how long every sample was of that class
	seenAt       time.Time     // the newest valid sample
	unknownSince time.Time     // zero: the newest sample was valid
}

// Next adds one sample to the evidence. It decides nothing.
func (d Debouncer) Next(o probes.Observation, now time.Time) Debouncer {
	seen := classOf(o)
	if seen == none {
		if d.unknownSince.IsZero() {
			d.unknownSince = now
		}
		d.certain = false
		return d
	}
	gap := max(0, now.Sub(d.seenAt))
	if gap > maxGap {
		d.window = 0
	}
	switch {
	case seen != d.class:
		d.held = 0
	case d.unknownSince.IsZero() && gap <= maxGap:
		d.held += gap
	}
	d.window <<= 1
	if seen >= bad {
		d.window |= 1
	}
	d.certain = o.Certain && seen >= bad
	d.class, d.seenAt, d.unknownSince = seen, now, time.Time{}
	return d
}

// forget returns the Debouncer without its evidence.
func (d Debouncer) forget() Debouncer {
	d.window, d.certain, d.class, d.held, d.unknownSince = 0, false, none, 0, time.Time{}
	return d
}

// Target is the level that the evidence asks for, at most one step away from
// the present one.
func (d Debouncer) Target(c Debounce, now time.Time) probes.Level {
	if unknown := d.unknownFor(now); unknown > 0 {
		if d.Level == probes.Critical && unknown >= c.UnknownAfter.Duration {
			return probes.Degraded
		}
		return d.Level
	}
	switch d.Level {
	case probes.Critical:
		if d.class != critical {
			return probes.Degraded
		}
	case probes.Degraded:
		if d.isClearing() && d.held >= d.ClearAfter(c) {
			return probes.OK
		}
		if d.class == critical && d.held >= c.CriticalAfter.Duration {
			return probes.Critical
		}
	default:
		recent := d.window & (1<<c.Samples - 1)
		if d.certain || bits.OnesCount32(recent) >= c.BadSamples {
			return probes.Degraded
		}
	}
	return d.Level
}

// isClearing reports whether the newest sample brings the condition nearer to OK.
func (d Debouncer) isClearing() bool {
	return d.Level > probes.OK && d.class == clear && d.unknownSince.IsZero()
}

// goodAt is when every sample will have been good for long enough if all are good from
// now on.
func (d Debouncer) goodAt(c Debounce, now time.Time) time.Time {
	if d.isClearing() {
		return d.seenAt.Add(d.ClearAfter(c) - d.held)
	}
	return now.Add(d.ClearAfter(c))
}

// unknownFor is how long the probe has not been able to tell; 0 when it can.
func (d Debouncer) unknownFor(now time.Time) time.Duration {
	if d.unknownSince.IsZero() {
		return 0
	}
	return max(1, now.Sub(d.unknownSince))
}

// Enter moves to a level. A set after OK is what damping counts.
func (d Debouncer) Enter(level probes.Level, c Debounce, now time.Time) Debouncer {
	if d.Level == probes.OK && level == probes.Degraded {
		d.Penalty = d.decayed(c, now) + 1
		d.SetAt = now
	}
	if level == probes.OK {
		d.window = 0
	}
	d.Level = level
	return d
}

// decayed is the penalty that is left now: it halves every PenaltyHalfLife.
func (d Debouncer) decayed(c Debounce, now time.Time) float64 {
	if d.Penalty == 0 {
		return 0
	}
	elapsed := max(0, now.Sub(d.SetAt))
	return d.Penalty * math.Exp2(-elapsed.Seconds()/c.PenaltyHalfLife.Seconds())
}

// ClearAfter is how long every sample must be good before the condition is OK:
// min(MaxClearAfter, ClearAfter·2^P), P being the penalty as it was before the
// last set added to it. A first set, or a set after a long quiet time, therefore
// clears after ClearAfter. A set that follows closely upon others clears later.
func (d Debouncer) ClearAfter(c Debounce) time.Duration {
	p := max(0, d.Penalty-1)
	// Compared as floats: the product may be beyond any Duration.
	if h := c.ClearAfter.Seconds() * math.Exp2(p); h < c.MaxClearAfter.Seconds() {
		return time.Duration(h * float64(time.Second))
	}
	return c.MaxClearAfter.Duration
}
