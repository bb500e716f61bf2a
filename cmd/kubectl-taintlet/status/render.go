package status

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/cmd/terminal"
)

// Format says how a Report is laid out as text.
type Format struct {
	Wide      bool
	NoHeaders bool
	// Columns is how many there are; 0: any number.
	Columns int
}

// The longest texts of a Node that are kept, in bytes. Accounts that may write a Node can write
// much longer ones.
const (
	maxName    = 253
	maxWord    = 128
	maxTaint   = 512
	maxMessage = 2048
)

// Lines is the Report as text: the fleet in one line, then the installation and its problems. A
// Node that was named has a card. Each condition that is not healthy has a row.
func (r Report) Lines(f Format) []string {
	table := r.table(f)
	if f.NoHeaders {
		return table
	}
	var lines []string
	about := append([]string{r.Summary.String()}, r.Installed...)
	if len(r.Unread) > 0 {
		parts := make([]string, len(r.Unread))
		for i, u := range r.Unread {
			parts[i] = fmt.Sprintf("%s (%s)", u.Part, u.Why)
		}
		about = append(about, "not read: "+strings.Join(parts, ", "))
	}
	for _, line := range about {
		lines = append(lines, terminal.Wrap(line, "", "  ", f.Columns)...)
	}
	for _, part := range [][]string{r.findingLines(f), r.cards(f), table} {
		if len(part) > 0 {
			lines = append(append(lines, ""), part...)
		}
	}
	return lines
}

// String is the line about the whole fleet.
func (s Summary) String() string {
	silent := "silent"
	if since := time.Duration(s.SilentSeconds) * time.Second; since > 0 {
		silent += map[bool]string{true: " for up to ", false: " for "}[s.States[Silent] > 1] + terminal.Span(since)
	}
	type counted struct {
		count int
		what  string
	}
	line := terminal.Count(s.Agents, "agent") + fmt.Sprintf(", %d healthy", s.States[Healthy])
	for _, c := range []counted{{s.States[Tainted], "tainted"}, {s.States[Degraded], "degraded without a taint"}, {s.States[Unknown], "unknown"}, {s.States[Silent], silent}, {s.States[Down], "with the agent down"}} {
		if c.count > 0 {
			line += fmt.Sprintf(", %d %s", c.count, c.what)
		}
	}
	if s.Agents == 0 {
		line = "no agents"
	}
	for _, c := range []counted{{s.States[NoAgent], "without an agent"}, {s.Paused, "paused"}, {s.Maintenance, "under maintenance"}} {
		if c.count > 0 {
			line += fmt.Sprintf("; %s %s", terminal.Count(c.count, "node"), c.what)
		}
	}
	return line
}

func (r Report) cards(f Format) (lines []string) {
	const labelWidth = 18
	add := func(label, text string) {
		if text != "" {
			lines = append(lines, terminal.Wrap(text, fmt.Sprintf("  %-*s", labelWidth, label), strings.Repeat(" ", labelWidth+2), f.Columns)...)
		}
	}
	for _, n := range r.Nodes {
		if !n.asked {
			continue
		}
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, n.Name+": "+string(n.State))
		add("agent", strings.Join(n.AgentPods, "; "))
		if n.LastSign != nil {
			add("last sign", terminal.With(ago(r.Time, *n.LastSign), ", by the agent ", n.Agent))
		}
		add("eviction slot", n.EvictionSlot)
		add("other taints", strings.Join(n.ForeignTaints, ", "))
		add("other conditions", strings.Join(n.ForeignConditions, ", "))
		add("events", EventsOf(n.Name))
	}
	return lines
}

const maxOfACode = 5

// findingLines are the Findings, each with the next command. Commands are not wrapped, so
// that they can be copied.
func (r Report) findingLines(f Format) (lines []string) {
	shown, hidden := map[Code]int{}, 0
	for _, p := range r.Findings {
		if shown[p.Code]++; shown[p.Code] > maxOfACode {
			hidden++
			continue
		}
		mark := map[Severity]string{Failure: "× ", Warning: "‼ "}[p.Severity]
		lines = append(lines, terminal.Wrap(terminal.With(string(p.Code), " ", p.Node)+": "+p.Text, mark, "  ", f.Columns)...)
		if p.Command != "" {
			lines = append(lines, "    "+p.Command)
		}
	}
	if hidden > 0 {
		lines = append(lines, fmt.Sprintf("  and %s more (-o json has all)", terminal.Count(hidden, "finding")))
	}
	return lines
}

// maxShown is how much of a message the narrow table shows, in bytes.
const maxShown = 240

// The columns. The message is the last.
const (
	nodeColumn = iota
	conditionColumn
	levelColumn
	sinceColumn
	taintColumn
	clearsColumn
	flapsColumn
	heldColumn
	removedColumn
	reasonColumn // in the wide table only
	ageColumn
	messageColumn
)

func headings() []string {
	return []string{"NODE", "CONDITION", "LEVEL", "SINCE", "TAINT", "CLEARS", "FLAPS", "HELD BACK BY", "REMOVED BY", "REASON", "AGE", "MESSAGE"}
}

// table is a row for each condition, below the headings. Columns that are empty in every row are
// left out, unless the table is wide. A table that is wider than the screen has its messages below
// the rows, and if it is still too wide all but its first columns.
func (r Report) table(f Format) (lines []string) {
	rows := [][]string{headings()}
	for _, n := range r.Nodes {
		rows = append(rows, n.rows(r.Time, f.Wide)...)
	}
	if len(rows) == 1 {
		return nil
	}
	var beside, below []int
	for column := range rows[0] {
		if f.Wide || slices.ContainsFunc(rows[1:], func(row []string) bool { return row[column] != "-" }) {
			beside = append(beside, column)
		}
	}
	for _, isBeside := range []func(column int) bool{
		func(int) bool { return true },
		func(column int) bool { return column != messageColumn },
		func(column int) bool { return column <= sinceColumn || column == ageColumn },
	} {
		below = append(slices.DeleteFunc(slices.Clone(beside), isBeside), below...)
		beside = slices.DeleteFunc(beside, func(column int) bool { return !isBeside(column) })
		if lines = terminal.Aligned(chosen(rows, beside)); f.fits(lines) {
			break
		}
	}
	table := lines[:1:1]
	if f.NoHeaders {
		table = nil
	}
	for i, row := range rows[1:] {
		if line := lines[i+1]; f.fits([]string{line}) {
			table = append(table, line)
		} else { // long names leave no room for columns
			table = append(table, terminal.Wrap(line, "", "  ", f.Columns)...)
		}
		for _, column := range below {
			text := terminal.With(strings.ToLower(rows[0][column]), ": ", row[column])
			if column == messageColumn {
				text = row[column]
			}
			if row[column] != "-" {
				table = append(table, terminal.Wrap(text, "    ", "    ", f.Columns)...)
			}
		}
	}
	return table
}

// chosen are the cells of some columns.
func chosen(rows [][]string, columns []int) (all [][]string) {
	for _, row := range rows {
		var cells []string
		for _, column := range columns {
			cells = append(cells, row[column])
		}
		all = append(all, cells)
	}
	return all
}

func (f Format) fits(lines []string) bool {
	return f.Columns == 0 || !slices.ContainsFunc(lines, func(line string) bool { return utf8.RuneCountInString(line) > f.Columns })
}

func (c Condition) row(node string, now time.Time, wide bool) []string {
	row := []string{
		nodeColumn: node, conditionColumn: c.Name, levelColumn: c.Level.String(), sinceColumn: age(now, c.Since), taintColumn: joined(c.Taints),
		heldColumn: c.HeldBy, removedColumn: c.RemovedBy, reasonColumn: c.Reason, ageColumn: age(now, c.ReportedAt), messageColumn: withoutSince(c.Message),
	}
	if c.ClearsAt != nil && c.ClearsAt.After(now) {
		row[clearsColumn] = "in " + terminal.Span(c.ClearsAt.Sub(now))
	} else if c.ClearsAt != nil {
		row[clearsColumn] = "now"
	}
	if c.Flaps > 1 || c.Flaps == 1 && wide { // once is nothing to see in the narrow table
		row[flapsColumn] = fmt.Sprint(c.Flaps)
	}
	return row
}

func (n Node) rows(now time.Time, wide bool) [][]string {
	var rows [][]string
	if message := n.message(); message != "" {
		row := []string{nodeColumn: n.Name, levelColumn: string(n.State), heldColumn: n.pause(), messageColumn: message}
		if (n.State == Silent || n.State == Down) && n.LastSign != nil {
			row[sinceColumn] = age(now, *n.LastSign)
		}
		rows = append(rows, row)
	}
	for _, c := range n.Conditions {
		rows = append(rows, c.row(n.Name, now, wide))
	}
	if len(n.Others) > 0 {
		rows = append(rows, []string{nodeColumn: n.Name, taintColumn: joined(n.Others), messageColumn: "taintlet's taints whose key names no condition"})
	}
	for _, row := range rows {
		if !wide {
			row[messageColumn], row[reasonColumn] = terminal.Cut(row[messageColumn], maxShown), ""
		}
		for column, cell := range row {
			row[column] = cmp.Or(cell, "-")
		}
	}
	return rows
}

func age(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	return terminal.Span(max(0, now.Sub(then)))
}

// withoutSince leaves out of a message since when the condition is degraded, which a
// column says: that of the message is by the clock on the wall.
func withoutSince(message string) string {
	return regexp.MustCompile(`; (critical )?since (\d{4}-\d\d-\d\d )?\d\d:\d\d UTC`).ReplaceAllString(message, "")
}

func (n Node) message() string {
	var parts []string
	switch n.State {
	case NoAgent:
		parts = append(parts, "no agent has written this Node")
	case Silent, Down:
		said := map[bool]string{true: "the agent is not ready", false: "no agent runs here"}[len(n.AgentPods) > 0]
		if n.State == Silent {
			said = "no sign of the agent"
		}
		said += "; " + map[bool]string{true: "the kubelet reports the Node as ready", false: "the Node is not ready either"}[n.Ready == "True"]
		if len(n.Conditions) > 0 {
			said += "; the rows below are the last report of the agent"
		}
		parts = append(parts, said)
	}
	if n.Problem != "" {
		parts = append(parts, n.Problem)
	}
	isHeld := func(by describe.Hold) bool {
		return slices.ContainsFunc(n.Conditions, func(c Condition) bool { return c.HeldBy == string(by) })
	}
	if n.Paused != "" && !isHeld(describe.HeldPaused) {
		parts = append(parts, "the annotation taintlet.dev/paused stops new taints")
	}
	if n.Maintenance != "" {
		parts = append(parts, "the Node is under maintenance, because its condition "+n.Maintenance+" is True: no new taints")
	}
	return strings.Join(parts, "; ")
}

func (n Node) pause() string {
	switch {
	case n.mistypedPause != "":
		return "Paused: all"
	case n.Paused != "":
		return "Paused: " + n.Paused
	case n.Maintenance != "":
		return string(describe.HeldMaintenance)
	}
	return ""
}

func joined(list []Taint) string {
	parts := make([]string, len(list))
	for i, t := range list {
		parts[i] = fmt.Sprintf("%s (%s)", t.Taint, t.Via)
	}
	return strings.Join(parts, ", ")
}
