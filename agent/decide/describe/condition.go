package describe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// ReasonBraked is the reason of a Node condition whose taint the fleet brake holds
// back.
const ReasonBraked = "FleetBrake"

// ReasonRecovering is the reason of a Node condition that is True although the newest
// samples are good: they must be good for longer, or the write budget is used up.
const ReasonRecovering = "Recovering"

// NoRule says that no rule asks for a taint of a condition.
const NoRule = "no rule asks for a taint"

// Condition is what a Node condition is rendered from.
type Condition struct {
	Level probes.Level
	// Newest is the newest sample.
	Newest probes.Observation
	// IsBad: the newest sample is Degraded or Critical.
	IsBad bool
	// SetFor is the reason for which the condition was set, SetBy the message of that sample.
	SetFor, SetBy string
	// SetAt is when it was set, CriticalAt when it became Critical; zero: not known, or
	// it is not.
	SetAt, CriticalAt time.Time
	// Held is what holds the taint back until Until, which is zero if it is not known. Evicting: it
	// is the eviction that is held back, not the taint of Degraded.
	Held     Hold
	Evicting bool
	Until    time.Time
	// Would has the taints that a condition in mode Observe would have.
	Would string
	// NoRule says that no rule asks for a taint, or none for its reason; empty: one does.
	NoRule string
	// KeepFails is KeepFailing while a stand-in is used because the policy fails; else empty.
	KeepFails string
	// Removals of its taints by other programs.
	Removals Removals
	// Blind: the newest sample is Unknown.
	Blind bool
	// Clears is when the condition becomes OK if all samples until then are good; zero: the newest
	// sample was not good.
	Clears time.Time
	// Good is the value that a good sample needs, as a text; empty: the probe does not say.
	Good string
	// ClearAfter is how long every sample must be good.
	ClearAfter time.Duration
	// Damped is how often it was set in a row, if it clears later for that; 0: it does not clear
	// later.
	Damped int
	// Manual: the taint is on the Node, and stays until an operator removes it.
	Manual bool
	// Braked says why the fleet brake holds it; empty: it does not.
	Braked string
	// Soft is the soft taint that a condition that is OK has; empty: none.
	Soft string
	// Starting says that the Node's start-up taint waits for this condition; empty: it does not.
	Starting string
	// Unrecorded: the record does not fit on the Node.
	Unrecorded bool
}

// Node makes the Node condition of type kind. The message of a bad one is a sentence with the value
// and the threshold, and two clauses: the most important other fact, and what clears the taint and
// when.
func (c Condition) Node(kind string, now time.Time) taints.NodeCondition {
	shown := taints.NodeCondition{Type: kind, Status: taints.ConditionFalse, Reason: c.Newest.Reason, Message: c.Newest.Message}
	switch {
	case c.Level > probes.OK:
		shown.Status = taints.ConditionTrue
		since := c.since(now)
		if !c.IsBad && c.SetFor != "" {
			shown.Reason, since = c.SetFor, strings.TrimSpace("bad "+since)+": "+c.cause()
		}
		shown.Message = join(c.Newest.Message, cmp.Or(c.held(now), c.KeepFails, c.Removals.text(now), since), c.clears(now))
	case c.Braked != "":
		shown.Status, shown.Reason = taints.ConditionUnknown, ReasonBraked
		shown.Message += "; " + c.Braked
	case c.Newest.Level == probes.Unknown:
		shown.Status = taints.ConditionUnknown
	}
	if c.Level <= probes.OK && c.Manual {
		shown.Message += "; the taint of an earlier fault stays until an operator removes it"
	}
	if !c.Clears.IsZero() {
		shown.Reason = ReasonRecovering
	}
	if c.Soft != "" {
		shown.Message += "; early taint " + c.Soft
	}
	if c.Starting != "" {
		shown.Message += "; " + c.Starting
	}
	if c.Unrecorded {
		shown.Message += "; taintlet's record does not fit beside the Node's other annotations, so a restart would forget its taints and damping"
	}
	return shown
}

// cause is the value for which the condition was set, without its threshold, which the newest value
// has, and the last clause of that sample, which names the culprit.
func (c Condition) cause() string {
	clauses := strings.Split(c.SetBy, "; ")
	value, _, _ := strings.Cut(clauses[0], ", threshold")
	if last := len(clauses) - 1; last > 0 {
		return value + "; " + clauses[last]
	}
	return value
}

// join makes one text of the parts that say something.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
}

// since says since when the condition has been critical, or bad at all; empty
// where that is not known.
func (c Condition) since(now time.Time) string {
	switch {
	case !c.CriticalAt.IsZero():
		return "critical since " + clockText(c.CriticalAt, now)
	case c.SetAt.IsZero():
		return ""
	}
	return "since " + clockText(c.SetAt, now)
}

// held says what keeps the condition from its taint, or from an eviction.
func (c Condition) held(now time.Time) string {
	what, until := "no taint", ""
	if c.Evicting {
		what = "no eviction"
	}
	if !c.Until.IsZero() {
		until = " until " + clockText(nextMinute(c.Until), now)
	}
	switch c.Held {
	case HeldContested:
		return what + " until the condition has been OK: someone removed the taint twice"
	case HeldVetoed:
		return what + " until the condition has been OK: someone removed the taint"
	case HeldAcknowledged:
		return what + " until the condition has been OK: someone removed the taint, which acknowledges the fault"
	case HeldObserved:
		return WouldSet(c.Would)
	case HeldPaused, HeldMaintenance:
		return what + " " + stoppedWhile(c.Held)
	case HeldWriteBudget:
		if !c.Clears.IsZero() {
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
	return c.NoRule
}

// clears says what clears the condition, and when.
func (c Condition) clears(now time.Time) string {
	if c.Blind {
		return "cannot clear while Unknown"
	}
	text := "clears after " + durationText(c.ClearAfter) + " " + cmp.Or(c.Good, "of good samples")
	if !c.Clears.IsZero() {
		text = "clears at " + clockText(nextMinute(c.Clears), now) + " if it stays " + cmp.Or(c.Good, "good")
	}
	if c.Damped > 0 {
		text += fmt.Sprintf(" (set %d times)", c.Damped)
	}
	if c.Manual {
		text += ", its taint when an operator removes it"
	}
	return text
}
