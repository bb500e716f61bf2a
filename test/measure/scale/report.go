package scale

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/test/measure"
)

// render is the result as people read it.
func render(f *figures, lines []line) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("# %d nodes, %s\n\n", f.Nodes, f.Date)
	if f.Partial != "" {
		p("**Partial:** %s.\n\n", f.Partial)
	}
	p("%s\n", f.Origin)
	p("Written by `make scale NODES=%d`; [docs/scale.md](../../../../docs/scale.md) says what it means.\n", f.Nodes)
	p("\n## Must hold\n\n| demand | measured | holds |\n|---|---|---|\n")
	for _, l := range lines {
		p("| %s | %s | %s |\n", l.what, l.measured, l.verdict)
	}
	r := &results{all: []*figures{f}, full: []*figures{f}}
	for _, section := range []struct {
		title    string
		measured bool
		render   func(printer)
	}{
		{"Idle, per node and hour", f.Quiet.Seconds > 0, r.idle}, {"What it costs", f.Base.Seconds > 0 || f.Idle.Seconds > 0, r.cost},
		{"Mass incidents", len(f.Incidents) > 0, r.incidents}, {"One write, in ms", len(f.Admission) > 0, r.admission},
		{"Requests of a mass incident without the brake", f.off().Requests > 0, r.incidentRequests},
		{"What kept pairs cost the controller manager", len(f.Held) > 0, r.held}, {"Restarts and a configuration", f.Start.Seconds > 0, r.restarts},
		{"Requests of a rolling restart", f.Restart.Requests > 0, r.restartRequests},
		{"kubectl taintlet status over all nodes", len(f.Status) > 0, r.status}, {"This program's own work", true, r.own},
	} {
		if section.measured {
			p("\n## %s\n\n", section.title)
			section.render(p)
		}
	}
	p("\nAll figures are in the file beside this one.\n")
	return b.String()
}

type printer func(format string, args ...any)

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// writeResults writes the text and, for runs of other sizes, the figures. The name of a
// partial run says so, and a full run is not overwritten by it.
func writeResults(folder string, f *figures, text string) error {
	name := fmt.Sprintf("%s-%d", f.Date, f.Nodes)
	if !f.isFull() {
		name += "-partial"
		if len(f.Parts) > 0 && len(f.Parts) < len(parts()) {
			name += "-" + strings.Join(f.Parts, "-")
		}
		if f.Cores > 0 {
			name += fmt.Sprintf("-cores-%g", f.Cores)
		}
	}
	path, err := measure.Write(folder, name, f, text)
	if err == nil {
		measure.Say("written to %s", path)
	}
	return err
}

// readResults returns all figures in a folder, from the oldest to the newest.
func readResults(folder string) ([]*figures, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []*figures
	for _, path := range paths {
		text, err := os.ReadFile(path) //nolint:gosec // our own file
		if err != nil {
			return nil, err
		}
		f := &figures{file: strings.TrimSuffix(filepath.Base(path), ".json")}
		if err := json.Unmarshal(text, f); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, f)
	}
	slices.SortStableFunc(all, func(a, b *figures) int { return strings.Compare(a.Date, b.Date) })
	return all, nil
}

// newestFull returns the newest full run of each size, from the smallest on.
func newestFull(all []*figures) []*figures {
	newest := map[int]*figures{}
	for _, f := range all {
		if f.isFull() {
			newest[f.Nodes] = f
		}
	}
	var some []*figures
	for _, size := range slices.Sorted(maps.Keys(newest)) {
		some = append(some, newest[size])
	}
	return some
}

// ofOtherSizes returns those that have not so many nodes.
func ofOtherSizes(all []*figures, nodes int) []*figures {
	return slices.DeleteFunc(slices.Clone(all), func(f *figures) bool { return f.Nodes == nodes })
}
