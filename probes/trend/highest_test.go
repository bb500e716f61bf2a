package trend

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The highest value is that of the samples since a time, or of one that is at most
// a period and two seconds older.
func TestHighest(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(9, 10))
	for _, period := range []time.Duration{100 * time.Millisecond, 900 * time.Millisecond, 4 * time.Second} {
		var h highest
		var all []timedValue
		at := time.Unix(1000, 0)
		for range 2000 {
			at = at.Add(time.Duration(1 + random.Int64N(int64(period))))
			value := random.Float64()
			all = append(all, timedValue{at, value})
			h.add(at, value)
			begin := at.Add(-sustainedSpan)
			least, most := 0.0, 0.0
			for _, v := range all {
				if !v.at.Before(begin) {
					least = max(least, v.value)
				}
				if !v.at.Before(begin.Add(-period - 2*time.Second)) {
					most = max(most, v.value)
				}
			}
			if got := h.since(begin); got < least || got > most {
				t.Fatalf("every %v, after %v: %v, want %v to %v", period, at.Sub(time.Unix(1000, 0)), got, least, most)
			}
		}
	}
}

// What was high before the span is over counts no more.
func TestHighestForgets(t *testing.T) {
	t.Parallel()
	s := samplesEvery(time.Second, 1000, 1000, 1000, 1000, 1000, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 49, 48, 47, 46, 45)
	if got := s.sustainedPerSecond(); got != -0.25 {
		t.Errorf("%v", got)
	}
}
