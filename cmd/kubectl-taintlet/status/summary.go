package status

import (
	"fmt"
	"strings"
	"time"

	"github.com/taintlet/taintlet/cmd/terminal"
)

// String is the line about the whole fleet.
func (s Summary) String() string {
	var parts []string
	add := func(count int, what string) {
		if count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, what))
		}
	}
	parts = append(parts, number(s.Agents, "agent"), fmt.Sprintf("%d healthy", s.Healthy))
	add(s.Tainted, "tainted")
	add(s.Degraded, "degraded without a taint")
	add(s.Unknown, "unknown")
	silent := "silent"
	if since := time.Duration(s.SilentSeconds) * time.Second; since > 0 {
		silent += " for "
		if s.Silent > 1 {
			silent += "up to "
		}
		silent += terminal.Span(since)
	}
	add(s.Silent, silent)
	add(s.Down, "with the agent down")
	line := strings.Join(parts, ", ")
	if s.Agents == 0 {
		line = "no agents"
	}
	if s.WithoutAgent > 0 {
		line += fmt.Sprintf("; %s without an agent", number(s.WithoutAgent, "node"))
	}
	if s.Paused > 0 {
		line += fmt.Sprintf("; %s paused", number(s.Paused, "node"))
	}
	if s.Maintenance > 0 {
		line += fmt.Sprintf("; %s under maintenance", number(s.Maintenance, "node"))
	}
	return line
}

func number(count int, what string) string {
	if count == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", count, what)
}
