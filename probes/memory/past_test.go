package memory

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
)

func TestPast(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	for name, test := range map[string]struct {
		samples []float64 // seconds
		now     float64
		span    time.Duration
		want    float64 // -1: none
	}{
		"nothing":                           {nil, 5, someSpan, -1},
		"the newest that is old enough":     {[]float64{0, 1, 2, 3, 4}, 5, someSpan, 3},
		"samples that came early":           {[]float64{0, 3, 3.25, 3.5, 4.75}, 5, someSpan, 3},
		"a long period":                     {[]float64{0, 4}, 8, someSpan, 4},
		"an early one after a long period":  {[]float64{0, 4}, 4.25, someSpan, 0},
		"a long span":                       {[]float64{0, 1, 2, 3, 11}, 12, fullSpan, 2},
		"a past that is shorter":            {[]float64{0, 1, 2}, 3, fullSpan, 0},
		"just long enough":                  {[]float64{0, 0.5}, 1, someSpan, 0},
		"a past that is much shorter":       {[]float64{0, 0.25, 0.5}, 0.75, fullSpan, -1},
		"after a gap":                       {[]float64{0, 1, 32}, 33, fullSpan, 32},
		"the longest time is no gap":        {[]float64{0, 1, 31}, 32, fullSpan, 1},
		"after the clock has stood still":   {[]float64{0, 1, 1}, 3, fullSpan, 1},
		"after the clock has run backwards": {[]float64{5, 6, 2}, 7, fullSpan, 2},
		"before the past":                   {[]float64{5, 6}, 4, someSpan, -1},
	} {
		var p past
		for _, seconds := range test.samples {
			s := sample{at: at(seconds)}
			p = p.comparable(s).add(s)
		}
		switch got, found := p.before(at(test.now), test.span); {
		case found != (test.want >= 0):
			t.Errorf("%s: found %t", name, found)
		case found && !got.at.Equal(at(test.want)):
			t.Errorf("%s: %v s, want %v s", name, got.at.Sub(start).Seconds(), test.want)
		}
	}
}

func TestPastKeepsOnlyWhatASpanNeeds(t *testing.T) {
	t.Parallel()
	var p past
	for _, apart := range []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, 4 * time.Second, probes.LongestGap} {
		at := time.Unix(1000, 0)
		for range 1000 {
			at = at.Add(apart)
			s := sample{at: at}
			p = p.comparable(s).add(s)
			if len(p) > int(fullSpan/pastSpacing)+2 {
				t.Fatalf("%d samples that are %v apart", len(p), apart)
			}
		}
	}
	if len(p) != 2 {
		t.Errorf("%d samples of the longest period", len(p))
	}
}
