package trend

import (
	"math"
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	t.Parallel()
	start := time.Unix(1e9, 0)
	for name, test := range map[string]struct {
		steps           []step
		left, plausible float64
		want            time.Duration
	}{
		"nothing was seen":                     {nil, 1000, 100, 10 * time.Second},
		"a quiet quantity":                     {[]step{{0, 1000}, {time.Second, 1000}}, 1000, 100, 10 * time.Second},
		"it grows":                             {[]step{{0, 1000}, {time.Second, 9000}}, 1000, 100, 10 * time.Second},
		"slower than is plausible":             {[]step{{0, 1000}, {time.Second, 990}}, 990, 99, 10 * time.Second},
		"faster than is plausible":             {[]step{{0, 1000}, {time.Second, 600}}, 600, 100, 1500 * time.Millisecond},
		"the fastest counts, not the newest":   {[]step{{0, 1000}, {time.Second, 600}, {2 * time.Second, 599}}, 599, 100, 1500 * time.Millisecond},
		"half of it after its half-life":       {append([]step{{0, 1000}, {time.Second, 600}}, quietUntil(10*time.Minute+time.Second, 600)...), 600, 100, 3 * time.Second},
		"a gap is no rate":                     {[]step{{0, 1000}, {31 * time.Second, 0}}, 1000, 1, 1000 * time.Second},
		"a clock that stands still is no rate": {[]step{{time.Second, 1000}, {time.Second, 0}}, 1000, 1, 1000 * time.Second},
		"nothing is left":                      {nil, 0, 100, 1},
		"less than nothing is left":            {nil, -5, 100, 1},
		"nothing is left and nothing falls":    {nil, 0, 0, math.MaxInt64},
		"nothing falls":                        {nil, 10, 0, math.MaxInt64},
	} {
		var p Pace
		for _, s := range test.steps {
			p.Add(start.Add(s.after), s.value)
		}
		got := p.Headroom(test.left, test.plausible)
		if diff := got - test.want; diff < -10*time.Millisecond || diff > 10*time.Millisecond {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// step is a value at a time since the start.
type step struct {
	after time.Duration
	value float64
}

// quietUntil is a value that does not change.
func quietUntil(end time.Duration, value float64) (steps []step) {
	for after := 20 * time.Second; after < end; after += 20 * time.Second {
		steps = append(steps, step{after, value})
	}
	return append(steps, step{end, value})
}
