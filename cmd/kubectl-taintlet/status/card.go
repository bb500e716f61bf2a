package status

import (
	"fmt"
	"strings"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/findings"
	"github.com/taintlet/taintlet/cmd/terminal"
)

// cards are a block for each Node that was asked for: its agent, and what others wrote on
// the Node. taintlet's own conditions are in the table.
func (r Report) cards(f Format) []string {
	var lines []string
	for _, n := range r.Nodes {
		if !n.asked {
			continue
		}
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, f.paint(n.Name+": "+string(n.State), colourOfLevel(string(n.State))))
		for _, field := range n.fields(r) {
			if field.text != "" {
				lines = append(lines, terminal.Wrap(field.text, fmt.Sprintf("  %-*s", labelWidth, field.label), strings.Repeat(" ", labelWidth+2), f.Columns)...)
			}
		}
	}
	return lines
}

// labelWidth is how many columns the label of a field takes.
const labelWidth = 18

// field is one line of a card.
type field struct{ label, text string }

func (n Node) fields(r Report) []field {
	fields := []field{{"agent", n.agentText(r)}}
	if n.LastSign != nil {
		fields = append(fields, field{"last sign", age(r.Time, *n.LastSign) + " ago"})
	}
	for _, s := range r.Slots {
		if s.Holder == n.Name {
			fields = append(fields, field{"eviction slot", s.Name})
		}
	}
	if n.Repair != nil {
		fields = append(fields, field{"repair needed", n.Repair.Message})
	}
	if n.Foreign != nil {
		taints := strings.Join(n.Foreign.Taints, ", ")
		if n.Foreign.IsUnschedulable {
			taints = strings.TrimSuffix("cordoned; "+taints, "; ")
		}
		fields = append(fields, field{"other taints", taints}, field{"other conditions", n.Foreign.conditionsText()})
	}
	return append(fields, field{"events", findings.EventsOf(n.Name)})
}

// agentText says which agents' pods are on the Node; empty: nobody asked.
func (n Node) agentText(r Report) string {
	var parts []string
	for _, p := range n.Pods {
		text := p.Name
		if p.Version != "" {
			text += ", version " + p.Version
		}
		readiness := "not ready"
		if p.Ready {
			readiness = "ready"
		}
		text += ", " + readiness
		if p.Since != nil {
			text += " for " + terminal.Span(max(0, r.Time.Sub(*p.Since)))
		}
		if p.Restarts > 0 {
			text += ", " + terminal.Count(p.Restarts, "restart")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

func (f Foreign) conditionsText() string {
	parts := make([]string, len(f.Conditions))
	for i, c := range f.Conditions {
		parts[i] = c.Type + " " + c.Status
		if c.Reason != "" {
			parts[i] += " (" + c.Reason + ")"
		}
	}
	return strings.Join(parts, ", ")
}
