package soak

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const (
	mebibyte = 1 << 20
	// mayGrow is how much more anonymous memory the last tenth may have than the
	// second, mayDiffer by how many its goroutines and descriptors may differ.
	mayGrow   = 1.0 // MiB
	mayDiffer = 2
	// fewest samples of a tenth have a median that says something.
	fewest = 10
)

// line is one demand, and what became of it.
type line struct {
	demand, measured string
	holds            bool
}

// tenth is the median of each number over a tenth of the run.
type tenth struct {
	Count                                     int
	RSS, Anon, Heap                           float64 // MiB
	Threads, Descriptors, Goroutines, Seconds float64
}

// tenths divides a run. The first has the start of the process, the second is what
// the last is compared with.
func tenths(samples []sample) [10]tenth {
	var parts [10][]sample
	for _, s := range samples {
		i := min(max(int(s.At*10), 0), 9)
		parts[i] = append(parts[i], s)
	}
	var all [10]tenth
	for i, part := range parts {
		all[i] = tenth{
			Count: len(part),
			RSS:   median(part, func(s sample) float64 { return float64(s.RSS) / mebibyte }),
			Anon:  median(part, func(s sample) float64 { return float64(s.Anon) / mebibyte }),
			Heap:  median(part, func(s sample) float64 { return float64(s.Heap) / mebibyte }),

			Threads:     median(part, func(s sample) float64 { return float64(s.Threads) }),
			Descriptors: median(part, func(s sample) float64 { return float64(s.Descriptors) }),
			Goroutines:  median(part, func(s sample) float64 { return float64(s.Goroutines) }),
		}
		if len(part) > 0 {
			all[i].Seconds = part[len(part)-1].CPU - part[0].CPU
		}
	}
	return all
}

func median(samples []sample, of func(sample) float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	var values []float64
	for _, s := range samples {
		values = append(values, of(s))
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}

// judge says of each demand whether it holds.
func judge(f *figures) []line {
	second, last := f.Tenths[1], f.Tenths[9]
	growth := last.Anon - second.Anon
	lines := []line{
		{
			fmt.Sprintf("at least %d samples in each tenth", fewest), fmt.Sprintf("at least %d", fewestOf(f.Tenths)),
			fewestOf(f.Tenths) >= fewest,
		},
		{
			"anonymous memory of the last tenth at most that of the second + 1 MiB",
			fmt.Sprintf("%.2f MiB, then %.2f MiB: %+.2f MiB", second.Anon, last.Anon, growth), growth <= mayGrow,
		},
		same("goroutines", second.Goroutines, last.Goroutines),
		same("descriptors", second.Descriptors, last.Descriptors),
		{"the process did not restart", cmp.Or(f.Ended, "one process from start to end"), f.Ended == ""},
		{"every incident ended as it should", fmt.Sprintf("%d did not", len(f.Failures)), len(f.Failures) == 0},
		{"no taint of taintlet's at the end", cmp.Or(strings.Join(f.Taints, ", "), "none"), len(f.Taints) == 0},
	}
	return lines
}

func fewestOf(all [10]tenth) int {
	return slices.MinFunc(all[:], func(a, b tenth) int { return cmp.Compare(a.Count, b.Count) }).Count
}

// same demands that a number is what it was. None at all is no number.
func same(what string, before, after float64) line {
	differs := max(before-after, after-before)
	return line{
		fmt.Sprintf("%s of the last tenth as in the second, ±%d", what, mayDiffer), fmt.Sprintf("%g, then %g", before, after),
		differs <= mayDiffer && before > 0 && after > 0,
	}
}

func allHold(lines []line) bool {
	return !slices.ContainsFunc(lines, func(l line) bool { return !l.holds })
}
