package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// render is the result as people read it.
func render(f *figures, lines []line) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s, %s\n\n", f.Mode, f.Date)
	fmt.Fprintf(&b, "%s Took %s.\n", f.Origin, f.Took.Round(time.Second))
	b.WriteString("Written by `make soak`; [README.md](../README.md) says what it means.\n\n")
	if f.Pace > 0 {
		fmt.Fprintf(&b, "All periods of the agent were divided by %d. The incidents' schedule has seed %d; from %.0f %% on there was none.\n\n", f.Pace, f.Seed, 100*quietFrom)
	}
	b.WriteString("| demand | measured | holds |\n|---|---|---|\n")
	for _, l := range lines {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", l.demand, l.measured, map[bool]string{true: "yes", false: "**no**"}[l.holds])
	}
	b.WriteString("\nMedians of each tenth of the run. Heap is what the Go runtime uses for objects.\n\n")
	b.WriteString("| tenth | samples | RSS | anonymous | heap | goroutines | descriptors | threads | CPU |\n|---|---|---|---|---|---|---|---|---|\n")
	for i, t := range f.Tenths {
		fmt.Fprintf(&b, "| %d | %d | %.2f MiB | %.2f MiB | %.2f MiB | %g | %g | %g | %.2f s |\n",
			i+1, t.Count, t.RSS, t.Anon, t.Heap, t.Goroutines, t.Descriptors, t.Threads, t.Seconds)
	}
	b.WriteString("\n| what was done | times | due in that time |\n|---|---|---|\n")
	for _, w := range f.Work {
		due := ""
		if w.Due > 0 {
			due = fmt.Sprintf("%.0f", w.Due)
		}
		fmt.Fprintf(&b, "| %s | %.0f | %s |\n", w.What, w.Done, due)
	}
	if len(f.Incidents) > 0 {
		b.WriteString("\n| incident | times |\n|---|---|\n")
	}
	for _, kind := range slices.Sorted(maps.Keys(f.Incidents)) {
		fmt.Fprintf(&b, "| %s | %d |\n", kind, f.Incidents[kind])
	}
	if len(f.Failures) > 0 {
		b.WriteString("\nWhat did not end as it should:\n\n")
	}
	for _, failure := range f.Failures {
		fmt.Fprintf(&b, "- %.300s\n", strings.ReplaceAll(failure, "\n", " "))
	}
	return b.String()
}

// name is the file's, without the date.
func (f *figures) name() string { return strings.ReplaceAll(strings.ToLower(f.Mode), " ", "-") }
