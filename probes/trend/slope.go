// Package trend measures quantities: how fast one changes, how scarce it is, and
// how to write it for a person.
package trend

import (
	"math"
	"slices"
	"time"

	"github.com/taintlet/taintlet/probes"
)

const (
	// maxSamples is how many samples a slope keeps: about 10 s of them in a
	// period of one second.
	maxSamples = 10
	// fewestSamples is how many samples a slope needs. Five samples have ten
	// lines through two of them. Any one sample is on four of the ten, so that one
	// odd sample cannot move the median far.
	fewestSamples = 5
	// spacing is how far apart a slope keeps its samples. Without it, samples in
	// quick succession would narrow the slope to a burst.
	spacing = 500 * time.Millisecond
	// newestSpan is the least time in which a slope must still hold at its end.
	newestSpan = time.Second
	// sustainedSpan is the time over which a fall has to be fast enough as well. A
	// program that starts takes much at once and stops. Over this span its fall is slow,
	// unless it took several times as much as is left. A steady fall is as fast over
	// this span as over any other.
	sustainedSpan = 20 * time.Second
)

// Never is the time until something that is not in sight.
const Never time.Duration = math.MaxInt64

// Slope tells how fast a quantity changes, from its last samples. It is the
// median of the slopes of the lines through every two samples (the Theil–Sen
// estimator), which a few odd samples do not sway. The zero Slope is ready for
// use. A copy of a Slope does not change with the original.
type Slope struct {
	samples [maxSamples]timedValue // oldest first
	count   int
	highest highest
}

// Add takes the next sample. Where the clock stood still or ran backwards, and
// after a gap of more than probes.LongestGap, the slope starts afresh.
func (s *Slope) Add(at time.Time, value float64) {
	if s.count > 0 {
		if since := at.Sub(s.samples[s.count-1].at); since <= 0 || since > probes.LongestGap {
			s.count, s.highest = 0, highest{}
		}
	}
	s.highest.add(at, value)
	expired := 0
	for expired < s.count && at.Sub(s.samples[expired].at) > probes.LongestGap {
		expired++
	}
	switch newest := s.count - 1; {
	case newest > 0 && s.samples[newest].at.Sub(s.samples[newest-1].at) < spacing:
		s.count-- // too close to the one before it: the new sample takes its place
	case s.count == maxSamples:
		expired = max(expired, 1)
	}
	copy(s.samples[:], s.samples[expired:s.count])
	s.count -= expired
	s.samples[s.count] = timedValue{at, value}
	s.count++
}

// perSecond returns the change of the quantity in one second. ok is false while
// there are too few samples.
func (s *Slope) perSecond() (change float64, ok bool) {
	if s.count < fewestSamples {
		return 0, false
	}
	var room [maxSamples * (maxSamples - 1) / 2]float64
	slopes := room[:0]
	for i, b := range s.samples[:s.count] {
		for _, a := range s.samples[:i] {
			slopes = append(slopes, (b.value-a.value)/b.at.Sub(a.at).Seconds())
		}
	}
	slices.Sort(slopes)
	middle := len(slopes) / 2
	if len(slopes)%2 == 1 {
		return slopes[middle], true
	}
	return (slopes[middle-1] + slopes[middle]) / 2, true
}

// newestPerSecond returns the change of the quantity in one second, from the last sample
// that is at least newestSpan old to the newest. The Slope has two samples at least.
func (s *Slope) newestPerSecond() float64 {
	newest := s.samples[s.count-1]
	earlier := s.samples[0]
	for _, sample := range s.samples[1 : s.count-1] {
		if newest.at.Sub(sample.at) >= newestSpan {
			earlier = sample
		}
	}
	return (newest.value - earlier.value) / newest.at.Sub(earlier.at).Seconds()
}

// sustainedPerSecond returns the change from the highest value of the last
// sustainedSpan to the newest, spread over that span, however long it took. The
// Slope has one sample at least.
func (s *Slope) sustainedPerSecond() float64 {
	newest := s.samples[s.count-1]
	return (newest.value - s.highest.since(newest.at.Add(-sustainedSpan))) / sustainedSpan.Seconds()
}

// TimeToEmpty returns how long the available amount lasts at the current rate. That is
// the slowest of three rates. The first is that of all samples. The second is that of the
// newest samples, since a program that has stopped takes no more. The third is that of the
// last sustainedSpan, since most programs that take much at once stop soon. It is Never
// when the quantity does not shrink, when there are too few samples, and when it lasts a
// year or longer.
func (s *Slope) TimeToEmpty(available float64) time.Duration {
	const year = 365 * 24 * time.Hour
	change, ok := s.perSecond()
	if !ok {
		return Never
	}
	if change = max(change, s.newestPerSecond(), s.sustainedPerSecond()); change >= 0 {
		return Never
	}
	seconds := max(0, available) / -change
	if seconds >= year.Seconds() {
		return Never
	}
	return time.Duration(seconds * float64(time.Second))
}
