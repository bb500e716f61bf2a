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
	"github.com/taintlet/taintlet/probes"
)

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
// the rows. If it is still too wide, it is written in blocks.
func (r Report) table(f Format) []string {
	rows := [][]string{headings()}
	for _, n := range r.Nodes {
		rows = append(rows, n.rows(r.Time, f.Wide)...)
	}
	if len(rows) == 1 {
		return nil
	}
	widths := make([]int, len(rows[0]))
	var first, below []int
	for column := range widths {
		isFull := f.Wide
		for i, row := range rows {
			widths[column] = max(widths[column], utf8.RuneCountInString(row[column]))
			isFull = isFull || i > 0 && row[column] != "-"
		}
		if isFull {
			first = append(first, column)
		}
	}
	for _, inLine := range []func(column int) bool{
		func(column int) bool { return column != messageColumn },
		func(column int) bool { return column <= sinceColumn || column == ageColumn },
	} {
		if f.Columns > 0 && width(first, widths) > f.Columns {
			below = append(slices.DeleteFunc(slices.Clone(first), inLine), below...)
			first = slices.DeleteFunc(first, func(column int) bool { return !inLine(column) })
		}
	}
	if f.NoHeaders {
		rows = rows[1:]
	}
	var lines []string
	for _, row := range rows {
		lines = append(lines, f.block(row, first, below, widths)...)
	}
	return lines
}

const columnGap = 2

func width(columns, widths []int) int {
	all := -columnGap
	for _, column := range columns {
		all += widths[column] + columnGap
	}
	return all
}

func (f Format) line(row []string, columns, widths []int) string {
	text := ""
	for _, column := range columns {
		cell := fmt.Sprintf("%-*s", widths[column]+columnGap, row[column])
		if column == levelColumn {
			cell = strings.Replace(cell, row[column], f.paint(row[column], colourOfLevel(row[column])), 1)
		}
		text += cell
	}
	return strings.TrimRight(text, " ")
}

// block is a row as a line with the first columns, and a line for each that is below.
func (f Format) block(row []string, first, below, widths []int) []string {
	lines := []string{f.line(row, first, widths)}
	if slices.Equal(row, headings()) {
		return lines
	}
	if f.Columns > 0 && width(first, widths) > f.Columns { // long names leave no room for columns
		lines = terminal.Wrap(f.line(row, first, make([]int, len(widths))), "", "  ", f.Columns)
	}
	for _, column := range below {
		text := row[column]
		if text == "-" {
			continue
		}
		if column != messageColumn {
			text = strings.ToLower(headings()[column]) + ": " + text
		}
		lines = append(lines, terminal.Wrap(text, "    ", "    ", f.Columns)...)
	}
	return lines
}

func colourOfLevel(level string) terminal.Colour {
	return map[string]terminal.Colour{
		probes.OK.String(): terminal.Green, string(Healthy): terminal.Green,
		probes.Degraded.String(): terminal.Yellow, string(Tainted): terminal.Yellow,
		probes.Critical.String(): terminal.Red, string(Down): terminal.Red, string(Silent): terminal.Red,
		probes.Unknown.String(): terminal.Magenta,
	}[level]
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
