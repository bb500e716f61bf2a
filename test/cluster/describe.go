package cluster

import (
	"slices"
	"strings"
)

// Sections returns those sections of what kubectl describe prints. A section
// begins with its name at the begin of a line.
func Sections(text string, names ...string) string {
	var kept strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, " ") {
			name, _, _ := strings.Cut(line, ":")
			inside = slices.Contains(names, name)
		}
		if inside {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// WithoutTimes cuts the two columns of times out of the table of conditions,
// which makes it fit a terminal.
func WithoutTimes(text string) string {
	var kept strings.Builder
	from, to := -1, -1 // the columns; -1 outside of the table
	for line := range strings.Lines(text) {
		if at := strings.Index(line, "LastHeartbeatTime"); at >= 0 {
			from, to = at, strings.Index(line, "Reason")
		} else if !strings.HasPrefix(line, " ") {
			from, to = -1, -1
		}
		if 0 <= from && from < to && to < len(line) {
			line = line[:from] + line[to:]
		}
		kept.WriteString(line)
	}
	return kept.String()
}
