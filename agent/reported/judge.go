package reported

import (
	"fmt"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Options say which condition is judged, and how.
type Options struct {
	// Type is that of the Node's condition.
	Type string
	// BadStatus is the status that is Degraded.
	BadStatus bool
	// StaleAfter is how long nothing of the condition may change, its heartbeat included,
	// until it is Unknown; 0: for ever.
	StaleAfter time.Duration
}

// sighting is the observed state of a condition. The time of a change is taken from this agent's
// clock, not from its reporter's.
type sighting struct {
	isSeen    bool
	condition *taints.NodeCondition // nil: the Node has none
	// changedAt is when it was another one most recently; zero: not since the agent started.
	changedAt time.Time
}

// next takes in the newest version.
func (s sighting) next(c *taints.NodeCondition, now time.Time) sighting {
	isSame := s.condition == nil && c == nil || s.condition != nil && c != nil && *s.condition == *c
	if s.isSeen && !isSame {
		s.changedAt = now
	}
	s.isSeen, s.condition = true, c
	return s
}

// saysMoreThan reports whether the Node has another status, or the status from before the agent's
// start begins to count.
func (s sighting) saysMoreThan(before sighting) bool {
	return s.status() != before.status() || before.changedAt.IsZero() && !s.changedAt.IsZero()
}

func (s sighting) status() taints.ConditionStatus {
	if s.condition == nil {
		return ""
	}
	return s.condition.Status
}

const (
	// severityBad is the severity of a bad status, halfway from the threshold to the worst, because
	// a status has no degrees.
	severityBad = 75
	// maxQuoted is how many bytes of the reporter's message are quoted.
	maxQuoted = 200
)

// judge returns what was seen as a sample. A reporter that is silent says nothing, neither
// good nor bad: after a start of this agent, too, until it has said something again.
func (o *Options) judge(s sighting, now time.Time) probes.Observation {
	c := s.condition
	switch {
	case c == nil:
		return o.unknown("ConditionMissing", "the Node has no condition "+o.Type)
	case o.StaleAfter > 0 && s.changedAt.IsZero():
		return o.unknown("HeartbeatNotSeen", ""+o.Type+" has not been updated since this agent started")
	case o.StaleAfter > 0 && now.Sub(s.changedAt) >= o.StaleAfter:
		return o.unknown("ConditionStale", fmt.Sprintf("%s has not been updated for %s", o.Type, o.StaleAfter))
	case c.Status != taints.ConditionTrue && c.Status != taints.ConditionFalse:
		return o.unknown("ReportedUnknown", fmt.Sprintf("%s is %s: %s", o.Type, quoted(string(c.Status)), quoted(c.Message)))
	}
	sample := probes.Observation{Condition: probes.Condition(o.Type), Level: probes.OK, Reason: reasonOf(c), Message: fmt.Sprintf("%s is %s: %s", o.Type, c.Status, quoted(c.Message))}
	if o.BadStatus == (c.Status == taints.ConditionTrue) {
		sample.Level, sample.Severity = probes.Degraded, severityBad
	}
	return sample
}

func (o *Options) unknown(reason, message string) probes.Observation {
	return probes.Observation{Condition: probes.Condition(o.Type), Level: probes.Unknown, Reason: reason, Message: message}
}

// reasonOf returns the reporter's reason; Reported where it has none of the usual form.
func reasonOf(c *taints.NodeCondition) string {
	if !probes.IsReason(c.Reason) {
		return "Reported"
	}
	return c.Reason
}

// quoted returns the beginning of a text of others in one line.
func quoted(text string) string {
	if len(text) > maxQuoted {
		text = text[:maxQuoted] + "…"
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.TrimSpace(text)
}
