package bed

import (
	"slices"
	"strconv"
	"strings"
)

// Metric returns the value of a time series on a page of metrics; 0: there is none.
func Metric(page, series string) float64 {
	for line := range strings.Lines(page) {
		if text, found := strings.CutPrefix(line, series+" "); found {
			value, _ := strconv.ParseFloat(strings.TrimSpace(text), 64)
			return value
		}
	}
	return 0
}

// Sum returns the sum of all time series of a metric on a page that have all of these
// labels, such as level="OK".
func Sum(page, metric string, labels ...string) (sum float64) {
	for line := range strings.Lines(page) {
		name, rest, _ := strings.Cut(line, "{")
		set, text, found := strings.Cut(rest, "} ")
		if name != metric || !found || slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(set, l) }) {
			continue
		}
		value, _ := strconv.ParseFloat(strings.TrimSpace(text), 64)
		sum += value
	}
	return sum
}
