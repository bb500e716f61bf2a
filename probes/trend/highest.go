package trend

import "time"

// timedValue is a value and the time at which it was measured.
type timedValue struct {
	at    time.Time
	value float64
}

// highest are the highest values of the last seconds, oldest first: one of each
// second in which there was a sample. The time is that of its first sample.
type highest struct {
	seconds [24]timedValue
	count   int
}

// add takes the next value.
func (h *highest) add(at time.Time, value float64) {
	if last := h.count - 1; last >= 0 && at.Sub(h.seconds[last].at) < time.Second {
		h.seconds[last].value = max(h.seconds[last].value, value)
		return
	}
	if h.count == len(h.seconds) {
		h.count = copy(h.seconds[:], h.seconds[1:])
	}
	h.seconds[h.count] = timedValue{at, value}
	h.count++
}

// since returns the highest value since a time, and in the last second with a
// sample that began before it. There is a value at least.
func (h *highest) since(begin time.Time) float64 {
	most := h.seconds[h.count-1]
	for i := h.count - 2; i >= 0 && !most.at.Before(begin); i-- {
		most = timedValue{h.seconds[i].at, max(most.value, h.seconds[i].value)}
	}
	return most.value
}
