package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// render makes the Node condition: the value and the threshold, what holds the
// taint back, what clears it and when, and since when it has been so.
func (s *State) render(t *turn, c *condition, o outlook, reported probes.Observation) taints.NodeCondition {
	shown := taints.NodeCondition{Type: ConditionType(c.name), Status: taints.ConditionFalse, Reason: reported.Reason, Message: reported.Message}
	switch {
	case c.debounce.Level > probes.OK:
		shown.Status = taints.ConditionTrue
		parts := []string{c.last.Message, c.sinceText(t.now), c.heldText(t, o), c.clearText(t, o)}
		if reason, message := c.cause(); classOf(c.last) < bad && reason != "" {
			shown.Reason = reason
			parts = append(parts[:1:1], parts[2], parts[3], strings.TrimSpace("bad "+parts[1])+": "+message)
		}
		shown.Message = strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
	case c.request.braked != "":
		shown.Status, shown.Reason = taints.ConditionUnknown, ReasonBraked
		shown.Message += "; " + c.request.braked
	case reported.Level == probes.Unknown:
		shown.Status = taints.ConditionUnknown
	}
	if s.ledger.unrecorded {
		shown.Message += "; taintlet's record does not fit beside the Node's other annotations, so a restart would forget its taints and damping"
	}
	return shown
}

// cause returns the reason for which the condition was set, and what was found then. A
// restarted agent knows the reason only.
func (c *condition) cause() (reason, message string) {
	if c.because.Level > probes.OK {
		return c.because.Reason, c.because.Message
	}
	return c.reason, c.reason
}

// sinceText says since when the condition has been critical, or bad at all; empty
// where that is not known.
func (c *condition) sinceText(now time.Time) string {
	switch {
	case c.debounce.Level == probes.Critical && !c.since.IsZero():
		return "critical since " + clockText(c.since, now)
	case c.debounce.SetAt.IsZero():
		return ""
	}
	return "since " + clockText(c.debounce.SetAt, now)
}

// heldText says what keeps the condition from its taint, or from an eviction.
func (c *condition) heldText(t *turn, o outlook) string {
	what := "no taint"
	if o.evicting {
		what = "no eviction"
	}
	until := ""
	if !o.until.IsZero() {
		until = " until " + clockText(nextMinute(o.until), t.now)
	}
	switch o.held {
	case HeldContested:
		return fmt.Sprintf("%s%s and until it has been OK: others removed it twice; to end that now, set and remove the annotation %s", what, until, taints.PausedAnnotation)
	case HeldVetoed:
		return what + " until it has been OK: others removed it"
	case HeldPaused:
		return what + " while the annotation " + taints.PausedAnnotation + " is there"
	case HeldWriteBudget:
		if !o.clears.IsZero() {
			return "the write budget is used up"
		}
		return what + until + ": the write budget is used up"
	case HeldEvictionSlot:
		return what + ": no eviction slot is free"
	case HeldEvictionInterval:
		return what + until + ": this Node has evicted already"
	case HeldControlPlane:
		return what + " on a Node of the control plane"
	}
	switch {
	case !t.policy.Asks(c.name, probes.Degraded):
		return "no rule asks for a taint"
	case o.standIn:
		return "others removed the taint; a stand-in takes its place" + until
	}
	return ""
}

// clearText says what clears the condition, and when.
func (c *condition) clearText(t *turn, o outlook) string {
	good := c.goodText()
	switch {
	case o.blind:
		return "cannot clear while Unknown"
	case o.clears.IsZero():
		debounce := t.policy.debounce(c.name)
		text := "clears after " + durationText(c.debounce.ClearAfter(debounce))
		if good == "" {
			text += " of good samples"
		} else {
			text += " " + good
		}
		if c.debounce.isDamped(debounce) {
			text += fmt.Sprintf(" (set %d times)", c.debounce.flaps())
		}
		return text
	case good == "":
		good = "good"
	}
	return "clears at " + clockText(nextMinute(o.clears), t.now) + " if it stays " + good
}

// goodText says what a good sample needs; empty: the probe does not say. It is of
// the sample that is to become good.
func (c *condition) goodText() string {
	if classOf(c.last) == clear && c.lastBad.Level > probes.OK {
		return c.lastBad.Clears
	}
	return c.last.Clears
}
