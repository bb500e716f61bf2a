package status

import (
	"fmt"
	"strings"
	"time"
)

// String is the line about the whole fleet.
func (s Summary) String() string {
	var parts []string
	add := func(count int, what string) {
		if count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, what))
		}
	}
	parts = append(parts, number(s.Agents, "agent"), fmt.Sprintf("%d well", s.Well))
	add(s.Tainted, "tainted")
	add(s.Untainted, "bad without a taint")
	add(s.Unknown, "unknown")
	silent := "silent"
	if since := time.Duration(s.SilentSeconds) * time.Second; since > 0 {
		silent += " for "
		if s.Silent > 1 {
			silent += "up to "
		}
		silent += span(since)
	}
	add(s.Silent, silent)
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
	return line
}

func number(count int, what string) string {
	if count == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", count, what)
}

// span is a duration in at most two units.
func span(d time.Duration) string {
	d = d.Truncate(time.Second)
	minutes := int(d.Minutes())
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", minutes)
	case d < 24*time.Hour && minutes%60 == 0, d >= 10*time.Hour && d < 48*time.Hour:
		return fmt.Sprintf("%d h", minutes/60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
	}
	return fmt.Sprintf("%d d", minutes/60/24)
}
