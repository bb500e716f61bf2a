package main

import (
	"slices"
	"testing"
	"time"
)

// times are numbers of seconds.
func times(seconds ...int) []time.Duration {
	var ts []time.Duration
	for _, s := range seconds {
		ts = append(ts, time.Duration(s)*time.Second)
	}
	return ts
}

// intervals are pairs of seconds.
func intervals(seconds ...int) []interval {
	var is []interval
	ts := times(seconds...)
	for pair := range slices.Chunk(ts, 2) {
		is = append(is, interval{pair[0], pair[1]})
	}
	return is
}

func TestIntervals(t *testing.T) {
	var of track
	for i, value := range []int{0, 1, 2, 2, 0, 3} {
		of.add(time.Duration(i)*time.Second, value)
	}
	got := of.intervals(9*time.Second, func(v int) bool { return v > 0 })
	if want := intervals(1, 4, 5, 9); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := of.changes(), times(1, 2, 4, 5); !slices.Equal(got, want) {
		t.Errorf("changes at %v, want %v", got, want)
	}
}

func TestOverlap(t *testing.T) {
	for name, c := range map[string]struct {
		a, b []interval
		want int
	}{
		"nothing":            {intervals(0, 5), nil, 0},
		"one after another":  {intervals(0, 5), intervals(5, 9), 0},
		"a part":             {intervals(0, 5), intervals(3, 9), 2},
		"one within another": {intervals(0, 9), intervals(3, 5), 2},
		"several":            {intervals(0, 2, 4, 6, 8, 20), intervals(1, 5, 9, 10, 19, 21), 1 + 1 + 1 + 1},
	} {
		for _, order := range [][2][]interval{{c.a, c.b}, {c.b, c.a}} {
			if got, want := overlap(order[0], order[1]), time.Duration(c.want)*time.Second; got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
}

func TestMostWithin(t *testing.T) {
	for name, c := range map[string]struct {
		at   []time.Duration
		want int
	}{
		"none":                     {nil, 0},
		"one":                      {times(7), 1},
		"over the end of an hour":  {times(0, 3500, 3550, 3700, 3750, 9000), 4},
		"both ends count":          {times(0, 3600), 2},
		"a second more":            {times(0, 3601), 1},
		"the same moment, several": {times(5, 5, 5), 3},
	} {
		if got := mostWithin(c.at, time.Hour); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestMedian(t *testing.T) {
	for want, of := range map[int][]time.Duration{4: times(9, 4, 1), 5: times(9, 4, 1, 6), 7: times(7)} {
		if got := median(of); got != time.Duration(want)*time.Second {
			t.Errorf("median of %v is %s, want %d s", of, got, want)
		}
	}
}

// TestDetect: which bad stretches saw a taint, and how long it took.
func TestDetect(t *testing.T) {
	for name, c := range map[string]struct {
		bad, tainted []interval
		delays       []time.Duration
		covered      int
	}{
		"never tainted":                {bad: intervals(5, 9)},
		"tainted before and after":     {bad: intervals(5, 9), tainted: intervals(1, 4, 11, 12)},
		"tainted meanwhile":            {bad: intervals(5, 9), tainted: intervals(7, 20), delays: times(2)},
		"tainted as it begins":         {bad: intervals(5, 9), tainted: intervals(5, 20), delays: times(0)},
		"tainted as it ends":           {bad: intervals(5, 9), tainted: intervals(9, 20), delays: times(4)},
		"ends at the very same moment": {bad: intervals(5, 5), tainted: intervals(5, 20), delays: times(0)},
		"tainted all the time":         {bad: intervals(5, 9, 12, 14), tainted: intervals(1, 20), covered: 2},
		"cleared as it begins":         {bad: intervals(5, 9), tainted: intervals(1, 5, 8, 20), delays: times(3)},
		"twice in one stretch":         {bad: intervals(5, 30), tainted: intervals(6, 10, 12, 20), delays: times(1)},
		"the second is covered":        {bad: intervals(5, 9, 12, 14, 40, 50), tainted: intervals(6, 30, 42, 60), delays: times(1, 2), covered: 1},
	} {
		delays, covered := detect(c.bad, c.tainted)
		if !slices.Equal(delays, c.delays) || covered != c.covered {
			t.Errorf("%s: %v and %d covered, want %v and %d", name, delays, covered, c.delays, c.covered)
		}
	}
}
