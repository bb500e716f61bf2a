package status

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
)

// Format says how a Report is laid out for people.
type Format struct {
	Wide      bool
	NoHeaders bool
	// Columns is how many there are; 0: any number. Rows is the same of lines.
	Columns, Rows int
	// Colours: levels are shown in colours.
	Colours bool
}

func (f Format) paint(text string, colour terminal.Colour) string {
	if !f.Colours {
		return text
	}
	return colour.Paint(text)
}

// The longest texts of a Node that are kept, in bytes. Accounts that may write a Node can write
// much longer ones.
const (
	maxName    = 253
	maxWord    = 128
	maxTaint   = 512
	maxMessage = 2048
)

// Lines is the Report as text: the fleet in one line, the installation and its problems, a card for
// a Node that was named, and a row for each condition that is not healthy (table.go).
func (r Report) Lines(f Format) []string {
	table := r.table(f)
	if f.NoHeaders {
		return bounded(table, f)
	}
	var lines []string
	for _, line := range append([]string{r.Summary.String()}, r.installedLines()...) {
		lines = append(lines, terminal.Wrap(line, "", "  ", f.Columns)...)
	}
	for _, part := range [][]string{r.findingLines(f), r.cards(f), table} {
		if len(part) > 0 {
			lines = append(append(lines, ""), part...)
		}
	}
	return bounded(lines, f)
}

func bounded(lines []string, f Format) []string {
	if f.Rows == 0 || len(lines) <= f.Rows {
		return lines
	}
	left := len(lines) - f.Rows + 1
	return append(lines[:f.Rows-1:f.Rows-1], fmt.Sprintf("… and %s more", terminal.Count(left, "line")))
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
		lines = append(lines, f.paint(n.Name+": "+string(n.State), colourOfLevel(string(n.State))))
		add("agent", n.agentText(r))
		if n.LastSign != nil {
			add("last sign", strings.TrimSuffix(ago(r.Time, *n.LastSign)+", by the agent "+n.Agent, ", by the agent "))
		}
		for _, s := range r.Slots {
			if s.Holder == n.Name {
				add("eviction slot", s.Name)
			}
		}
		if n.Foreign != nil {
			taints := strings.Join(n.Foreign.Taints, ", ")
			if n.Foreign.IsUnschedulable {
				taints = strings.TrimSuffix("cordoned; "+taints, "; ")
			}
			add("other taints", taints)
			add("other conditions", strings.Join(n.Foreign.Conditions, ", "))
		}
		add("events", EventsOf(n.Name))
	}
	return lines
}

func (n Node) agentText(r Report) string {
	var parts []string
	for _, p := range n.Pods {
		text := strings.TrimSuffix(p.Name+", version "+p.Version, ", version ") + map[bool]string{true: ", ready", false: ", not ready"}[p.Ready]
		if p.Since != nil {
			text += forSince(r.Time, *p.Since)
		}
		if p.Restarts > 0 {
			text += ", " + terminal.Count(p.Restarts, "restart")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

func podsOf(pods []*corev1.Pod) []Pod {
	var all []Pod
	for _, p := range pods {
		isReady, since := installation.ReadySince(p)
		pod := Pod{Name: terminal.Clean(p.Name, maxName), Version: terminal.Clean(installation.VersionOf(installation.Agent(&p.Spec).Image), maxWord), Ready: isReady}
		if !since.IsZero() {
			pod.Since = &since
		}
		if c := installation.AgentStatus(p); c != nil {
			pod.Restarts = int(c.RestartCount)
		}
		all = append(all, pod)
	}
	return all
}

func (r Report) installedLines() []string {
	var lines []string
	for _, d := range r.DaemonSets {
		line := fmt.Sprintf("DaemonSet %s/%s: %d desired, %d ready", d.Namespace, d.Name, d.Desired, d.Ready)
		if d.Missing > 0 {
			line += fmt.Sprintf(", %d missing", d.Missing)
		}
		if version := installation.VersionOf(d.Image); version != "" {
			line += "; version " + version
		}
		lines = append(lines, line)
	}
	if len(r.Slots) > 0 {
		lines = append(lines, r.slotsLine())
	}
	if len(r.Unread) > 0 {
		parts := make([]string, len(r.Unread))
		for i, u := range r.Unread {
			parts[i] = fmt.Sprintf("%s (%s)", u.Part, u.Why)
		}
		lines = append(lines, "not read: "+strings.Join(parts, ", "))
	}
	return lines
}

func (r Report) slotsLine() string {
	free := 0
	var held []string
	for _, s := range r.Slots {
		switch {
		case s.Holder == "":
			free++
		case s.CooldownUntil != nil:
			held = append(held, fmt.Sprintf("%s holds %s, cooldown until %s", s.Holder, s.Name, s.CooldownUntil.Format("15:04 UTC")))
		case s.RenewedAt == nil:
			held = append(held, s.Holder+" holds "+s.Name)
		default:
			held = append(held, fmt.Sprintf("%s holds %s, renewed %s ago", s.Holder, s.Name, terminal.Span(max(0, r.Time.Sub(*s.RenewedAt)))))
		}
	}
	return strings.Join(append([]string{fmt.Sprintf("eviction slots: %d, %d free", len(r.Slots), free)}, held...), "; ")
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
		mark, colour := "‼", terminal.Yellow
		if p.Severity == Failure {
			mark, colour = "×", terminal.Red
		}
		text := strings.TrimSuffix(string(p.Code)+" "+p.Node, " ") + ": " + p.Text
		wrapped := terminal.Wrap(text, "  ", "  ", f.Columns)
		wrapped[0] = f.paint(mark, colour) + wrapped[0][1:]
		lines = append(lines, wrapped...)
		if p.Command != "" {
			lines = append(lines, "    "+p.Command)
		}
	}
	return lines
}
