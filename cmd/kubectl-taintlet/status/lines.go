package status

import (
	"fmt"
)

// Lines is the Report for people: the fleet in one line, what is installed, what is wrong
// with it (installed.go), a card for a Node that was asked for (card.go), and a row for
// each condition that is not healthy (table.go).
func (r Report) Lines(f Format) []string {
	table := r.table(f)
	if f.NoHeaders {
		return bounded(table, f)
	}
	var lines []string
	for _, line := range append([]string{r.Summary.String()}, r.installedLines()...) {
		lines = append(lines, hanging(line, f.Columns)...)
	}
	for _, part := range [][]string{r.problemLines(f), r.cards(f), table} {
		if len(part) > 0 {
			lines = append(append(lines, ""), part...)
		}
	}
	return bounded(lines, f)
}

// bounded leaves out the lines for which there is no room.
func bounded(lines []string, f Format) []string {
	if f.Rows == 0 || len(lines) <= f.Rows {
		return lines
	}
	left := len(lines) - f.Rows + 1
	return append(lines[:f.Rows-1:f.Rows-1], fmt.Sprintf("… and %s more", number(left, "line")))
}
