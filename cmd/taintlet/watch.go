package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/taintlet/taintlet/probes"
)

// redrawAfter is how often watch takes a sample: as often as the network's probe
// may.
const redrawAfter = time.Second

func watchVerb() verb {
	return verb{
		name:    "watch",
		summary: "sample this host every second, with bars, until Ctrl-C",
		about: `Each bar shows the severity, 0 to 100. The mark in the middle, 50, is the threshold of Degraded. It
shows single samples: an agent sets a taint only after several of them. It contacts no API server and
changes nothing. Colours need a terminal; NO_COLOR turns them off.`,
		examples: []example{
			{"See how near each threshold is", "taintlet watch"},
			{"Without colours", "NO_COLOR=1 taintlet watch"},
		},
		bind: func(flags *pflag.FlagSet) func(context.Context, call) error {
			s := &sampler{}
			s.add(flags)
			return func(ctx context.Context, c call) error {
				if err := s.load(); err != nil {
					return err
				}
				return watch(ctx, s, newScreen(c.stdout))
			}
		},
	}
}

// watch draws a sample each second until the context ends.
func watch(ctx context.Context, s *sampler, to *screen) error {
	ticker := time.NewTicker(redrawAfter)
	defer ticker.Stop()
	for {
		r := s.sample(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := to.draw(r.frame(time.Now(), to.colours)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// frame returns the lines of one picture.
func (r report) frame(now time.Time, colours bool) []string {
	lines := []string{fmt.Sprintf("%s  %s  (Ctrl-C ends)", r.Node, now.Format(time.TimeOnly)), ""}
	for _, c := range r.Conditions {
		paint := func(text string) string { return text }
		if colours {
			paint = func(text string) string { return colourOf(c.Level) + text + plain }
		}
		lines = append(lines,
			fmt.Sprintf("%-18s  %s  %s %3d", c.Condition, paint(fmt.Sprintf("%-8s", c.Level)), paint(bar(c.Severity)), c.Severity),
			strings.Repeat(" ", 20)+c.Message)
		for _, a := range c.Taints {
			lines = append(lines, fmt.Sprintf("%20sasks for %s (%s)", "", a.Taint, a.Via))
		}
	}
	return lines
}

// barCells is how long each half of a bar is.
const barCells = 12

// bar draws a severity of 0 to 100, with a mark at the threshold.
func bar(severity int) string {
	full := min(2*barCells, max(0, severity*2*barCells/100))
	cells := strings.Repeat("█", full) + strings.Repeat("·", 2*barCells-full)
	half := []rune(cells)
	return string(half[:barCells]) + "│" + string(half[barCells:])
}

const plain = "\x1b[0m"

// colourOf is green, yellow, red, and magenta for what is not known.
func colourOf(level probes.Level) string {
	switch level {
	case probes.OK:
		return "\x1b[32m"
	case probes.Degraded:
		return "\x1b[33m"
	case probes.Critical:
		return "\x1b[31m"
	default:
		return "\x1b[35m"
	}
}

// screen is where pictures are drawn: over one another on a terminal, and one
// below the other elsewhere.
type screen struct {
	w          io.Writer
	isTerminal bool
	colours    bool
	columns    func() int // 0: as many as there are
	lines      func() int // 0: the same
	drawn      bool
}

// draw draws a picture in one write, so that it does not flicker.
func (s *screen) draw(lines []string) error {
	var text strings.Builder
	switch {
	case s.isTerminal && !s.drawn:
		text.WriteString("\x1b[2J\x1b[H")
	case s.isTerminal:
		text.WriteString("\x1b[H")
	case s.drawn:
		text.WriteString("\n")
	}
	s.drawn = true
	columns := s.columns()
	for _, line := range lines {
		text.WriteString(cut(line, columns))
		if s.isTerminal {
			text.WriteString("\x1b[K")
		}
		text.WriteString("\n")
	}
	if s.isTerminal {
		text.WriteString("\x1b[J")
	}
	_, err := io.WriteString(s.w, text.String())
	return err
}

// cut shortens a line to that number of columns. An ellipsis in the last one says
// so. Sequences that set a colour take no column.
func cut(line string, columns int) string {
	all := 0
	eachLetter(line, func(_ rune, inSequence bool) {
		if !inSequence {
			all++
		}
	})
	if columns == 0 || all <= columns {
		return line
	}
	var text strings.Builder
	eachLetter(line, func(letter rune, inSequence bool) {
		switch {
		case inSequence:
			text.WriteRune(letter)
			return
		case columns > 1:
			text.WriteRune(letter)
		case columns == 1:
			text.WriteRune('…')
		}
		columns--
	})
	return text.String()
}

// eachLetter calls do with each letter of a line, and whether it belongs to a
// sequence that sets a colour.
func eachLetter(line string, do func(letter rune, inSequence bool)) {
	inSequence := false
	for _, letter := range line {
		inSequence = inSequence || letter == '\x1b'
		do(letter, inSequence)
		inSequence = inSequence && letter != 'm'
	}
}
