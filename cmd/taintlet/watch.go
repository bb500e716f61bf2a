package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/probes"
)

// redrawAfter is how often watch takes a sample: as often as the network's probe
// may.
const redrawAfter = time.Second

// watch draws a sample each second until the context ends.
func watch(ctx context.Context, s *sampler, to *terminal.Screen) error {
	ticker := time.NewTicker(redrawAfter)
	defer ticker.Stop()
	for {
		r := s.sample(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := to.Draw(r.frame(time.Now(), to.Colours)); err != nil {
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
		var colour terminal.Colour
		if colours {
			colour = colourOf(c.Level)
		}
		lines = append(lines,
			fmt.Sprintf("%-18s  %s  %s %3d", c.Condition, colour.Paint(fmt.Sprintf("%-8s", c.Level)), colour.Paint(bar(c.Severity)), c.Severity),
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

// colourOf is green, yellow, red, and magenta for what is not known.
func colourOf(level probes.Level) terminal.Colour {
	switch level {
	case probes.OK:
		return terminal.Green
	case probes.Degraded:
		return terminal.Yellow
	case probes.Critical:
		return terminal.Red
	}
	return terminal.Magenta
}
