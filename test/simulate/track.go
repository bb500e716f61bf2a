package main

import (
	"slices"
	"time"
)

// track is a value over time: each step holds until the next.
type track []step

type step struct {
	at    time.Duration
	value int
}

// add notes the value at a time; only a new one makes a step.
func (t *track) add(at time.Duration, value int) {
	if len(*t) == 0 || t.last() != value {
		*t = append(*t, step{at, value})
	}
}

// last is the newest value.
func (t track) last() int { return t[len(t)-1].value }

// changes are the times of all steps but the first, the initial value.
func (t track) changes() []time.Duration {
	times := make([]time.Duration, 0, len(t))
	for _, s := range t[1:] {
		times = append(times, s.at)
	}
	return times
}

// interval is a time that is not over at to.
type interval struct{ from, to time.Duration }

// intervals are the longest times in which the predicate holds of the value.
func (t track) intervals(end time.Duration, holds func(int) bool) []interval {
	var found []interval
	inside := false
	for _, s := range t {
		switch h := holds(s.value); {
		case h && !inside:
			found = append(found, interval{s.at, end})
		case !h && inside:
			found[len(found)-1].to = s.at
		}
		inside = holds(s.value)
	}
	return found
}

func total(of []interval) time.Duration {
	var sum time.Duration
	for _, i := range of {
		sum += i.to - i.from
	}
	return sum
}

// overlap is the time that is in both lists. Both are in order.
func overlap(a, b []interval) time.Duration {
	var sum time.Duration
	for len(a) > 0 && len(b) > 0 {
		sum += max(0, min(a[0].to, b[0].to)-max(a[0].from, b[0].from))
		if a[0].to < b[0].to {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return sum
}

// mostWithin is the most of the times, given in order, that lie within any
// stretch of that length, both of its ends counted in.
func mostWithin(times []time.Duration, length time.Duration) int {
	most, first := 0, 0
	for last := range times {
		for times[last]-times[first] > length {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

// median is the middle value, or the mean of the two in the middle. There must
// be one.
func median(values []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
