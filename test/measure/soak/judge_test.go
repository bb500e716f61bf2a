package soak

import (
	"slices"
	"strings"
	"testing"
)

// run is a run of 200 samples, whose numbers a function gives by how much is over.
func run200(of func(at float64) sample) *figures {
	f := &figures{}
	for i := range 200 {
		at := float64(i) / 200
		s := of(at)
		s.At = at
		f.Samples = append(f.Samples, s)
	}
	return f
}

// steady is what an agent holds that does not grow.
func steady(float64) sample {
	return sample{RSS: 20 * mebibyte, Anon: 6 * mebibyte, Goroutines: 30, Descriptors: 18, Threads: 9}
}

// Each demand fails by itself, and only by what it is about.
func TestJudge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run   *figures
		fails []string
	}{
		"steady": {run200(steady), nil},
		"0.9 MiB more": {run200(func(at float64) sample {
			s := steady(at)
			s.Anon += uint64(at * 1.1 * mebibyte)
			return s
		}), nil},
		"a leak of memory": {run200(func(at float64) sample {
			s := steady(at)
			s.Anon += uint64(at * 1.5 * mebibyte)
			return s
		}), []string{"anonymous memory"}},
		"memory that only the file system gave": {run200(func(at float64) sample {
			s := steady(at)
			s.RSS += uint64(at * 5 * mebibyte)
			return s
		}), nil},
		"a large start": {run200(func(at float64) sample {
			s := steady(at)
			if at < 0.1 {
				s.Anon, s.Goroutines, s.Descriptors = 60*mebibyte, 500, 300
			}
			return s
		}), nil},
		"peaks in the last tenth": {run200(func(at float64) sample {
			s := steady(at)
			if int(at*200)%3 == 0 {
				s.Anon, s.Goroutines, s.Descriptors = 60*mebibyte, 500, 300
			}
			return s
		}), nil},
		"goroutines grow": {run200(func(at float64) sample {
			s := steady(at)
			s.Goroutines += int(at * 4)
			return s
		}), []string{"goroutines"}},
		"two goroutines more": {run200(func(at float64) sample {
			s := steady(at)
			s.Goroutines += int(at * 2.3)
			return s
		}), nil},
		"descriptors grow": {run200(func(at float64) sample {
			s := steady(at)
			s.Descriptors += int(at * 4)
			return s
		}), []string{"descriptors"}},
		"nothing was measured":      {&figures{}, []string{"samples", "goroutines", "descriptors"}},
		"no metrics":                {run200(func(at float64) sample { s := steady(at); s.Goroutines = 0; return s }), []string{"goroutines"}},
		"it ended":                  {with(func(f *figures) { f.Ended = "exit status 2" }), []string{"restart"}},
		"an incident did not end":   {with(func(f *figures) { f.Failures = []string{"memory is short"} }), []string{"incident"}},
		"a taint stays":             {with(func(f *figures) { f.Taints = []string{"a:NoSchedule"} }), []string{"no taint"}},
		"only the first half there": {half(), []string{"samples", "goroutines", "descriptors"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.run.Tenths = tenths(c.run.Samples)
			lines := judge(c.run)
			for _, l := range lines {
				fails := slices.ContainsFunc(c.fails, func(word string) bool { return strings.Contains(l.demand, word) })
				if l.holds == fails {
					t.Errorf("%s: measured %s, holds: %t", l.demand, l.measured, l.holds)
				}
			}
			if allHold(lines) != (c.fails == nil) {
				t.Errorf("all hold: %t", allHold(lines))
			}
		})
	}
}

func with(change func(*figures)) *figures {
	f := run200(steady)
	change(f)
	return f
}

// half is a run that was interrupted.
func half() *figures {
	f := run200(steady)
	f.Samples = f.Samples[:100]
	return f
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []int
		want   float64
	}{{nil, 0}, {[]int{7}, 7}, {[]int{9, 1}, 5}, {[]int{9, 1, 2}, 2}, {[]int{1, 1, 1, 100}, 1}} {
		var samples []sample
		for _, v := range c.values {
			samples = append(samples, sample{Threads: v})
		}
		if got := median(samples, func(s sample) float64 { return float64(s.Threads) }); got != c.want {
			t.Errorf("%v: %g, want %g", c.values, got, c.want)
		}
	}
}
