// Package trend tells how a quantity stands: how it changes, how scarce it is,
// and how to write it for a person.
package trend

import (
	"slices"
	"time"

	"github.com/taintlet/taintlet/probes"
)

const (
	// maxSamples is how many samples a slope keeps: about 10 s of looks in a
	// period of one second.
	maxSamples = 10
	// fewestSamples is how many samples a slope needs. Of the ten lines through
	// five samples, six do not touch any single one of them, so that one odd
	// sample cannot move the median far.
	fewestSamples = 5
	// spacing keeps the samples apart, so that looks in quick succession
	// do not narrow the view to a burst.
	spacing = 500 * time.Millisecond
)

// Slope tells how a quantity changes, from its last samples: the median of
// the slopes of the lines through every two of them (the Theil–Sen
// estimator), which a few odd samples do not sway. The zero slope is ready for
// use. It is a value: a copy does not change with the original.
type Slope struct {
	samples [maxSamples]timedValue // oldest first
	count   int
}

type timedValue struct {
	at    time.Time
	value float64
}

// Add takes the next sample. A clock that stands still or runs backwards, and
// a gap of more than longestGap, start afresh.
func (s *Slope) Add(at time.Time, value float64) {
	if s.count > 0 {
		if since := at.Sub(s.samples[s.count-1].at); since <= 0 || since > probes.LongestGap {
			s.count = 0
		}
	}
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

// perSecond is the change of the quantity in one second; ok is false as long
// as there are too few samples to tell.
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

// TimeToEmpty is how long it takes until nothing of what is available is left,
// if the quantity goes on as it did. ok is false when it does not shrink, when
// there are too few samples to tell, and when there is a year or more to go.
func (s *Slope) TimeToEmpty(available float64) (left time.Duration, ok bool) {
	const year = 365 * 24 * time.Hour
	change, ok := s.perSecond()
	if !ok || change >= 0 {
		return 0, false
	}
	seconds := max(0, available) / -change
	if seconds >= year.Seconds() {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}
