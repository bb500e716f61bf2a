package memory

import (
	"slices"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/pressure"
)

// Stalls are judged over a span of time that does not depend on when samples are taken.
// Stalls come in bursts, and a sample 0.25 s after another one sees a burst or none.
const (
	// someSpan is short, because Degraded never waits. It is not shorter, because
	// a sample that follows soon after a bad one sees most of the same time again:
	// a burst of 0.2 s must not be bad twice.
	someSpan = 2 * time.Second
	// fullSpan is long, because a single calmer sample restarts the wait for Critical. On a full
	// host of two CPUs (24 GiB, 400 MiB of it available) the share of each half second was anything
	// from 8 to 29 %.
	fullSpan = 10 * time.Second
	// leastSpan is what there must be at least, soon after the start of the agent
	// or after a gap.
	leastSpan = time.Second
	// pastSpacing is how far apart the past keeps its samples, so that it stays
	// short. A probe takes samples at least that far apart.
	pastSpacing = 100 * time.Millisecond
)

// past are the samples before the newest one, oldest first.
type past []sample

// comparable returns the past that a new sample can be compared with. That is none where
// the clock stood still or ran backwards, after a gap, and where a total of stalls
// has jumped.
func (p past) comparable(s sample) past {
	if len(p) > 0 {
		last := p[len(p)-1]
		if since := s.at.Sub(last.at); since <= 0 || since > probes.LongestGap || s.jumpsFrom(last) {
			return p[:0]
		}
	}
	return p
}

// jumpsFrom reports whether tasks are said to have waited for longer since an earlier
// sample than time has passed. The totals of the earlier one may be as old as reading
// it took.
func (s sample) jumpsFrom(earlier sample) bool {
	if !s.measured || !earlier.measured {
		return false
	}
	most := s.at.Sub(earlier.at) + earlier.took + pressure.ShortestStall // clocks differ a little
	return s.stalls.Some-earlier.stalls.Some > most || s.stalls.Full-earlier.stalls.Full > most
}

// add appends a sample to those that it can be compared with, and drops those that no
// span needs any more.
func (p past) add(s sample) past {
	if last := len(p) - 1; last > 0 && p[last].at.Sub(p[last-1].at) < pastSpacing {
		p = p[:last] // too close to the one before it: the new sample takes its place
	}
	p = append(p, s)
	needed := 0
	for needed+1 < len(p) && s.at.Sub(p[needed+1].at) >= fullSpan {
		needed++
	}
	return slices.Delete(p, 0, needed)
}

// newest returns the last sample, or none.
func (p past) newest() sample {
	if len(p) == 0 {
		return sample{}
	}
	return p[len(p)-1]
}

// before returns the newest sample that is at least that span older than a time,
// or the oldest one where the past is shorter. found is false where that one is
// less than leastSpan older.
func (p past) before(at time.Time, span time.Duration) (s sample, found bool) {
	for _, s := range slices.Backward(p) {
		if at.Sub(s.at) >= span {
			return s, true
		}
	}
	if len(p) == 0 || at.Sub(p[0].at) < leastSpan {
		return sample{}, false
	}
	return p[0], true
}
