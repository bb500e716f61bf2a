package status

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/taintlet/taintlet/agent/decide"
)

// maxShown is how many runes of a message the narrow table shows.
const maxShown = 240

// Table writes the Report for people: the line about the fleet, then a row for each
// condition. wide has all columns and whole messages. Otherwise columns that are
// empty in each row are left out. At most so many rows are shown; 0: all.
func (r Report) Table(w io.Writer, wide bool, rows int) error {
	if _, err := fmt.Fprintln(w, r.Summary); err != nil || len(r.Nodes) == 0 {
		return err
	}
	lines := [][]string{headings()}
	for _, n := range r.Nodes {
		lines = append(lines, n.rows(r.Time, wide)...)
	}
	left := 0
	if rows > 0 && len(lines) > rows+1 {
		left, lines = len(lines)-rows-1, lines[:rows+1]
	}
	if !wide {
		lines = withoutEmptyColumns(lines)
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		fmt.Fprintln(t, strings.Join(line, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if left > 0 {
		fmt.Fprintf(w, "… and %s more\n", number(left, "row"))
	}
	return nil
}

// Screen is Table for a screen that cuts its lines: each message has a line of its
// own, below its row.
func (r Report) Screen(wide bool, rows int) []string {
	var messages []string
	for _, n := range r.Nodes {
		for _, row := range n.rows(r.Time, wide) {
			messages = append(messages, row[len(row)-1])
		}
	}
	var text strings.Builder
	if err := r.Table(&text, wide, max(0, rows/2)); err != nil {
		return nil // unreachable: into memory
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	const before = 3 // the line about the fleet, an empty one, the headings
	var screen []string
	for i, line := range lines {
		at := i - before
		if at < 0 || at >= len(messages) || !strings.HasSuffix(line, messages[at]) {
			screen = append(screen, strings.TrimRight(strings.TrimSuffix(line, "MESSAGE"), " "))
			continue
		}
		screen = append(screen, strings.TrimRight(strings.TrimSuffix(line, messages[at]), " "), "    "+messages[at])
	}
	return screen
}

func headings() []string {
	return []string{"NODE", "CONDITION", "LEVEL", "SINCE", "TAINT", "CLEARS", "FLAPS", "HELD BACK BY", "REMOVED BY", "REASON", "MESSAGE"}
}

// reasonColumn is shown in the wide table only.
const reasonColumn = 9

// rows are the Node's rows, each with a cell for each heading.
func (n Node) rows(now time.Time, wide bool) [][]string {
	var rows [][]string
	row := func(condition, level string, since *time.Time, more ...string) {
		cells := make([]string, len(headings()))
		cells[0], cells[1], cells[2] = n.Name, condition, level
		if since != nil && !since.IsZero() {
			cells[3] = span(max(0, now.Sub(*since)))
		}
		copy(cells[4:], more)
		message := &cells[len(cells)-1]
		if !wide {
			*message = shorten(*message, maxShown)
			cells[reasonColumn] = ""
		}
		for i := range cells {
			cells[i] = dash(cells[i])
		}
		rows = append(rows, cells)
	}
	if message := n.message(now); message != "" {
		var since *time.Time
		if n.State == Silent {
			since = n.LastSign
		}
		row("", string(n.State), since, "", "", "", n.pause(), "", "", message)
	}
	for _, c := range n.Conditions {
		since := c.Since
		row(c.Name, c.Level, &since, joined(c.Taints), c.clears(now), flapsOf(c, wide), c.HeldBy, c.RemovedBy, c.Reason, c.Message)
	}
	if len(n.Others) > 0 {
		row("", "", nil, joined(n.Others), "", "", "", "", "", "taints of taintlet's; their key names no condition")
	}
	return rows
}

// message is what there is to say of the Node as a whole; empty: nothing.
func (n Node) message(now time.Time) string {
	var parts []string
	switch n.State {
	case NoAgent:
		parts = append(parts, "no agent has written this Node")
	case Silent:
		said := "no sign of the agent"
		if n.Ready == "True" {
			said += "; the kubelet says that the Node is ready"
		} else {
			said += "; the Node is not ready either"
		}
		if len(n.Conditions) > 0 {
			said += "; what follows is what the agent said last"
		}
		parts = append(parts, said)
	default:
		if n.asked && n.LastSign != nil {
			parts = append(parts, fmt.Sprintf("%s wrote this Node %s ago", strings.TrimSpace("the agent "+n.Agent), span(max(0, now.Sub(*n.LastSign)))))
		}
	}
	if n.Problem != "" {
		parts = append(parts, n.Problem)
	}
	isTold := slices.ContainsFunc(n.Conditions, func(c Condition) bool { return c.HeldBy == string(decide.HeldPaused) })
	if n.Paused != "" && !isTold {
		parts = append(parts, "the annotation taintlet.dev/paused stops new taints")
	}
	return strings.Join(parts, "; ")
}

func (n Node) pause() string {
	if n.Paused == "" {
		return ""
	}
	return "Paused: " + n.Paused
}

// clears says when the taint goes, seen from now.
func (c Condition) clears(now time.Time) string {
	if c.ClearsAt == nil {
		return ""
	}
	if left := c.ClearsAt.Sub(now); left > 0 {
		return "in " + span(left)
	}
	return "now"
}

func joined(list []Taint) string {
	parts := make([]string, len(list))
	for i, t := range list {
		parts[i] = fmt.Sprintf("%s (%s)", t.Taint, t.Via)
	}
	return strings.Join(parts, ", ")
}

// flapsOf is how often the condition was set. Once is nothing to see in the narrow
// table.
func flapsOf(c Condition, wide bool) string {
	if c.Flaps == 0 || c.Flaps == 1 && !wide {
		return ""
	}
	return fmt.Sprint(c.Flaps)
}

func dash(cell string) string {
	if cell == "" {
		return "-"
	}
	return cell
}

// withoutEmptyColumns leaves out the columns that have a dash in each row.
func withoutEmptyColumns(lines [][]string) [][]string {
	var keep []int
	for i := range lines[0] {
		for _, line := range lines[1:] {
			if line[i] != "-" {
				keep = append(keep, i)
				break
			}
		}
	}
	fewer := make([][]string, len(lines))
	for i, line := range lines {
		for _, column := range keep {
			fewer[i] = append(fewer[i], line[column])
		}
	}
	return fewer
}
