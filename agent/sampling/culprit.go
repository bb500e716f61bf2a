package sampling

import (
	"log/slog"

	"github.com/taintlet/taintlet/probes"
)

// culpritLog logs who took what is scarce, once for each of them and each incident.
type culpritLog struct {
	who          string
	isUnreadable bool // that was logged
}

// follow takes in a sample.
func (l *culpritLog) follow(o probes.Observation, log *slog.Logger) {
	c := &o.Culprit
	switch {
	case o.Level == probes.OK && !o.Hysteresis:
		l.who = ""
	case c.Unreadable != "" && !l.isUnreadable:
		l.isUnreadable = true
		log.Warn("who took it cannot be named on this host", "condition", string(o.Condition), "reason", c.Unreadable)
	case c.Kind != "" && c.Who() != l.who:
		l.who = c.Who()
		log.Info("culprit", append([]any{"condition", string(o.Condition)}, culpritAttrs(c)...)...)
	}
}

// culpritAttrs are a culprit's attributes for the log.
func culpritAttrs(c *probes.Culprit) []any {
	return []any{"kind", c.Kind, "name", c.Name, "command", c.Command, "took", c.TookText, "holds", c.HoldsText, "gone", c.IsGone}
}
