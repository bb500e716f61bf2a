package status

import (
	"fmt"
	"strings"
	"time"

	"github.com/taintlet/taintlet/cmd/terminal"
)

// Format says how a Report is laid out for people.
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
// Node that was named has a card. Each condition that is not healthy has a row (table.go).
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
		silent += map[bool]string{true: " for up to ", false: " for "}[s.Silent > 1] + terminal.Span(since)
	}
	type counted struct {
		count int
		what  string
	}
	line := terminal.Count(s.Agents, "agent") + fmt.Sprintf(", %d healthy", s.Healthy)
	for _, c := range []counted{{s.Tainted, "tainted"}, {s.Degraded, "degraded without a taint"}, {s.Unknown, "unknown"}, {s.Silent, silent}, {s.Down, "with the agent down"}} {
		if c.count > 0 {
			line += fmt.Sprintf(", %d %s", c.count, c.what)
		}
	}
	if s.Agents == 0 {
		line = "no agents"
	}
	for _, c := range []counted{{s.WithoutAgent, "without an agent"}, {s.Paused, "paused"}, {s.Maintenance, "under maintenance"}} {
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
func (r Report) findingLines(f Format) []string {
	var lines []string
	shown, all := map[Code]int{}, map[Code]int{}
	for _, p := range r.Findings {
		all[p.Code]++
	}
	for _, p := range r.Findings {
		shown[p.Code]++
		switch count := shown[p.Code]; {
		case count == maxOfACode+1:
			lines = append(lines, fmt.Sprintf("  and %d more %s (-o json has all)", all[p.Code]-maxOfACode, p.Code))
			continue
		case count > maxOfACode:
			continue
		}
		mark := map[Severity]string{Failure: "× ", Warning: "‼ "}[p.Severity]
		lines = append(lines, terminal.Wrap(terminal.With(string(p.Code), " ", p.Node)+": "+p.Text, mark, "  ", f.Columns)...)
		if p.Command != "" {
			lines = append(lines, "    "+p.Command)
		}
	}
	return lines
}
