package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taintlet/taintlet/cmd/command"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/probes"
)

// onceTimeout is how long the probes may take together.
const onceTimeout = 10 * time.Second

func onceVerb() *cobra.Command {
	var s sampler
	var output string
	var isWatched bool
	c := &cobra.Command{
		Use: "once", Short: "Take one sample of this host and print it", Args: cobra.NoArgs,
		Long: `Take one sample of this host and print it.

It runs each probe once and prints the taints that the rules would set. It contacts no API server and
changes nothing. SEVERITY 50 is the threshold of Degraded. VIA shows how a taint would stay on the
Node if deploy/keep.yaml were installed.

With --watch it samples every second until Ctrl-C. Each bar shows a severity, 0 to 100, with a mark at the
threshold. An agent sets a taint only after several samples. Setting NO_COLOR turns the colours off.

Exit code 3: a condition is not OK. With --watch the exit code is 0.`,
		Example: `  # Is this host healthy?
  taintlet once
  # For a bug report
  taintlet once -o yaml
  # Watch how near each threshold is
  taintlet once --watch
  # Use the thresholds of a file
  taintlet once --config=config.yaml`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.load(); err != nil {
				return err
			}
			if isWatched && c.Flags().Changed("output") {
				return command.Usagef("--watch and --output exclude each other")
			}
			if isWatched {
				return watch(c.Context(), &s, terminal.NewScreen(c.OutOrStdout()))
			}
			r := s.sample(c.Context())
			if err := r.print(output, c.OutOrStdout()); err != nil {
				return err
			}
			if !r.isWell() {
				return command.ErrNotWell
			}
			return nil
		},
	}
	c.Flags().SortFlags = false
	command.AddChoice(c, &output, "output", "o", "output format: table, json or yaml", "table", "json", "yaml")
	c.Flags().BoolVarP(&isWatched, "watch", "w", false, "sample every second and draw bars, until Ctrl-C")
	s.add(c.Flags())
	return c
}

// redrawAfter is how often watch takes a sample: as often as the network's probe
// may.
const redrawAfter = time.Second

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

func (r report) frame(now time.Time, colours bool) []string {
	lines := []string{fmt.Sprintf("%s  %s  (Ctrl-C ends)", r.Node, now.Format(time.TimeOnly)), ""}
	for _, c := range r.Conditions {
		var colour terminal.Colour
		if colours {
			colour = map[probes.Level]terminal.Colour{probes.OK: terminal.Green, probes.Degraded: terminal.Yellow, probes.Critical: terminal.Red, probes.Unknown: terminal.Magenta}[c.Level]
		}
		lines = append(lines,
			fmt.Sprintf("%-18s  %s  %s %3d", c.Condition, colour.Paint(fmt.Sprintf("%-8s", c.Level)), colour.Paint(bar(c.Severity)), c.Severity),
			strings.Repeat(" ", 20)+c.Message)
		for _, a := range c.Taints {
			lines = append(lines, fmt.Sprintf("%20swould set %s (%s)", "", a.Taint, a.Via))
		}
	}
	return lines
}

const barCells = 12

// bar draws a severity of 0 to 100, with a mark at the threshold.
func bar(severity int) string {
	full := min(2*barCells, max(0, severity*2*barCells/100))
	left, right := min(full, barCells), max(0, full-barCells)
	half := func(full int) string { return strings.Repeat("█", full) + strings.Repeat("·", barCells-full) }
	return half(left) + "│" + half(right)
}
