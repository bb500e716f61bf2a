package status

import (
	"strings"

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

// hanging wraps a line; all lines but the first are indented.
func hanging(line string, columns int) []string {
	lines := terminal.Wrap(line, "", columns)
	if len(lines) == 1 {
		return lines
	}
	rest := terminal.Wrap(strings.TrimPrefix(line[len(lines[0]):], " "), "  ", columns)
	return append(lines[:1], rest...)
}
