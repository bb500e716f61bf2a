package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
)

// summarize writes what happened in all, what is still so at the end, and what a
// replay cannot know.
func (r *replay) summarize() error {
	fmt.Fprintf(r.w, "\n%d samples from %s to %s (%s).\n\n", r.samples, r.from.Format(time.RFC3339), r.now.Format(time.RFC3339), r.now.Sub(r.from).Round(time.Second))
	t := tabwriter.NewWriter(r.w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CONDITION\tSAMPLES\tBAD\tAS RECORDED\tSET\tCRITICAL\tCLEARED\tNOT OK FOR\tAT THE END")
	for _, c := range r.subjects {
		if c.samples == 0 {
			continue
		}
		notOK := c.notOK
		if c.level != probes.OK {
			notOK += r.now.Sub(c.since)
		}
		end := strings.TrimSpace(c.level.String() + " " + strings.Join(c.taints, " "))
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", c.name, c.samples, c.bad, c.kept, c.sets, c.criticals, c.cleared, notOK.Round(time.Second), end)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(r.w, "\n%s\n", strings.Join(r.notes(), "\n"))
	return err
}

// notes say what the answer rests on.
func (r *replay) notes() []string {
	var notes []string
	for _, c := range r.subjects {
		_, can := c.section.(config.Rejudger)
		switch {
		case c.kept == 0:
		case !can:
			notes = append(notes, fmt.Sprintf("%s: the levels are those that were recorded. A recording lacks what other hosts answered, so only the debounce is replayed.", c.name))
		default:
			notes = append(notes, fmt.Sprintf("%s: %d of %d samples keep their recorded level, because it does not follow from their inputs.", c.name, c.kept, c.samples))
		}
	}
	notes = append(notes, "Replayed on a Node that nobody else changes: no pause, no fleet brake, no contest. Each write lands at once.")
	if r.cfg.Eviction.Slots > 0 {
		notes = append(notes, "An eviction slot is taken to be free.")
	}
	return append(notes, "The agent samples sooner after a bad sample than a recording does. It may set a taint some seconds earlier.")
}
