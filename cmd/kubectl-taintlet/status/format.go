package status

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/taintlet/taintlet/cmd/terminal"
)

// Format says how a Report is laid out for people.
type Format struct {
	// Wide shows all columns and whole messages.
	Wide bool
	// NoHeaders shows the rows and nothing else.
	NoHeaders bool
	// Columns is how many there are; 0: any number. Rows is the same of lines.
	Columns, Rows int
	// Colours: levels are shown in colours.
	Colours bool
}

func (f Format) paint(text string, colour terminal.Colour) string {
	if !f.Colours {
		return text
	}
	return colour.Paint(text)
}

// The longest texts of a Node that are kept, in bytes. Whoever may write a Node
// may write much longer ones.
const (
	maxName    = 253
	maxWord    = 128
	maxTaint   = 512
	maxMessage = 2048
)

// shorten cuts a text to so many runes.
func shorten(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

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
		lines = append(lines, terminal.Wrap(line, "", "  ", f.Columns)...)
	}
	for _, part := range [][]string{r.findingLines(f), r.cards(f), table} {
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
	return append(lines[:f.Rows-1:f.Rows-1], fmt.Sprintf("… and %s more", terminal.Count(left, "line")))
}

// String is the line about the whole fleet.
func (s Summary) String() string {
	var parts []string
	add := func(count int, what string) {
		if count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, what))
		}
	}
	parts = append(parts, terminal.Count(s.Agents, "agent"), fmt.Sprintf("%d healthy", s.Healthy))
	add(s.Tainted, "tainted")
	add(s.Degraded, "degraded without a taint")
	add(s.Unknown, "unknown")
	silent := "silent"
	if since := time.Duration(s.SilentSeconds) * time.Second; since > 0 {
		silent += " for "
		if s.Silent > 1 {
			silent += "up to "
		}
		silent += terminal.Span(since)
	}
	add(s.Silent, silent)
	add(s.Down, "with the agent down")
	line := strings.Join(parts, ", ")
	if s.Agents == 0 {
		line = "no agents"
	}
	if s.WithoutAgent > 0 {
		line += fmt.Sprintf("; %s without an agent", terminal.Count(s.WithoutAgent, "node"))
	}
	if s.Paused > 0 {
		line += fmt.Sprintf("; %s paused", terminal.Count(s.Paused, "node"))
	}
	if s.Maintenance > 0 {
		line += fmt.Sprintf("; %s under maintenance", terminal.Count(s.Maintenance, "node"))
	}
	return line
}
