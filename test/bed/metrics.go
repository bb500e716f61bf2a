package bed

import (
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
