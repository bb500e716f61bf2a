// Package trend measures quantities: how soon one can be used up, how scarce it is, and
// how to write it for a person.
package trend

import (
	"math"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// paceHalfLife is how soon half of the fastest rate that was seen is forgotten.
const paceHalfLife = 10 * time.Minute

// timedValue is a value and the time at which it was measured.
type timedValue struct {
	at    time.Time
	value float64
}

// Pace remembers how fast a quantity fell at its fastest. The zero Pace is ready
// for use.
type Pace struct {
	last    timedValue
	fastest float64 // per second, when it was seen
	seenAt  time.Time
}

// Add takes the next value.
func (p *Pace) Add(at time.Time, value float64) {
	before := p.last
	p.last = timedValue{at, value}
	since := at.Sub(before.at)
	if before.at.IsZero() || since <= 0 || since > probes.LongestGap {
		return
	}
	if fell := (before.value - value) / since.Seconds(); fell > p.fastestAt(at) {
		p.fastest, p.seenAt = fell, at
	}
}

// fastestAt returns how much is still remembered of the fastest rate.
func (p *Pace) fastestAt(at time.Time) float64 {
	if p.fastest == 0 {
		return 0
	}
	return p.fastest * math.Exp2(-at.Sub(p.seenAt).Seconds()/paceHalfLife.Seconds())
}

// Headroom returns the least time in which the amount that is left can be gone. It takes
// the fastest rate that was seen, or the plausible rate where that is faster. It is at
// least 1 ns, since 0 means that an Observation has none.
func (p *Pace) Headroom(left, plausible float64) time.Duration {
	const longest = float64(math.MaxInt64) / float64(time.Second)
	seconds := max(0, left) / max(p.fastestAt(p.last.at), plausible)
	if !(seconds < longest) { // NaN as well: nothing ever falls
		return math.MaxInt64
	}
	return max(1, time.Duration(seconds*float64(time.Second)))
}
