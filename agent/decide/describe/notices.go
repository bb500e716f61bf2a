package describe

import (
	"fmt"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Lost says who removed a taint. The field manager is empty where it is not known.
func Lost(by string, lost taints.Taint) string { return somebody(by) + " removed " + lost.String() }

// SetAgain says that a taint that another client removed is set again, and how to stop that.
func SetAgain(by string, lost taints.Taint, name probes.Condition, node string) string {
	return fmt.Sprintf("%s; it is set again, because of %s; to stop that: kubectl annotate node %s %s=%s", Lost(by, lost), name, node, taints.PausedAnnotation, name)
}

// Contested says that a taint that another client removed twice is not set for now.
func Contested(by string, lost taints.Taint) string {
	return fmt.Sprintf("%s removed %s twice within a minute; taintlet does not set it again until the condition has been OK. To keep taints off for longer, set the annotation %s on the Node. To have them set again now, set the annotation and remove it", somebody(by), lost.String(), taints.PausedAnnotation)
}

const (
	// SlotMissing says that an eviction waits.
	SlotMissing = "a condition is critical, but all eviction slots are taken or missing; no pod is evicted"
	// RecordNewer says that the Node is left alone.
	RecordNewer = "the record on the Node was written by a newer release of taintlet; this agent does not change the Node"
)

// KeepFailing says in a condition that the admission policy fails. KeepFails is the long form, for
// which a condition lacks the room.
const KeepFailing = "a stand-in is used, because the policy " + taints.KeepPolicyName + " fails"

// KeepFails says that the admission policy did not keep a taint, and what follows.
func KeepFails(lost taints.Pair) string {
	return "the policy " + taints.KeepPolicyName + " fails: the node-lifecycle-controller removed " + lost.String() + "; stand-ins are used until it works"
}

// Vetoed says that a taint that evicts is not set again for now.
func Vetoed(by string, lost taints.Taint) string {
	return Lost(by, lost) + "; it will not be set again until the condition has been OK"
}

// Acknowledged says that an operator removed a taint that waited for its removal, and whether the
// fault remains.
func Acknowledged(by string, removed taints.Taint, isFaulty bool) string {
	if isFaulty {
		return Lost(by, removed) + ", which acknowledges the fault; it will not be set again until the condition has been OK"
	}
	return Lost(by, removed) + ", which acknowledges the earlier fault"
}

// Silenced says that the fleet brake continues although most peers do not answer any more.
func Silenced(name probes.Condition, asked int) string {
	return fmt.Sprintf("held back by the fleet brake: a large part of the peers reported %s, and only %d answer now", name, asked)
}

// Braked says why the fleet brake holds a condition back.
func Braked(name probes.Condition, bad, asked, zoneBad, zoneAsked int) string {
	text := fmt.Sprintf("held back by the fleet brake: %d of %d peers report %s", bad, asked, name)
	if zoneAsked > 0 && zoneAsked < asked {
		text += fmt.Sprintf(", %d of %d in this zone", zoneBad, zoneAsked)
	}
	return text
}

// BrakeBegins says of a sample that no taint follows, and why.
func BrakeBegins(sample, braked string) string {
	return fmt.Sprintf("%s; %s. No new taint is set until fewer peers report it. Check the configuration", sample, braked)
}

// StillUnknown says that the samples have been Unknown for long.
func StillUnknown(name probes.Condition, since time.Duration, sample string) string {
	return fmt.Sprintf("%s has been Unknown for %s; NoSchedule taints stay: %s", name, durationText(since), sample)
}

// Changed says why the level changed, and the newest sample if another one was decisive.
func Changed(decisive, newest probes.Observation) string {
	if decisive.Message == newest.Message {
		return decisive.Message
	}
	return decisive.Message + "; now " + newest.Message
}

// StartupRemoved says that the Node has started.
func StartupRemoved(key string, after time.Duration) string {
	return fmt.Sprintf("no condition is Degraded; the start-up taint %s is removed after %s", key, durationText(after))
}

// StartupWaits says what the start-up taint waits for in one condition; empty: for nothing.
func StartupWaits(key string, since time.Time, missing string, now time.Time) string {
	if missing == "" {
		return ""
	}
	return fmt.Sprintf("the start-up taint %s has waited for this condition since %s: %s", key, clockText(since, now), missing)
}

// StartupStays says which conditions the start-up taint has waited for too long.
func StartupStays(key string, since time.Duration, waits []string) string {
	return fmt.Sprintf("the start-up taint %s has been on the Node for %s and stays until every condition is OK; it waits for %s", key, durationText(since), strings.Join(waits, "; "))
}

// Paused says for which conditions a pause begins. unreadable is a value of the
// annotation that is not known.
func Paused(conditions, unreadable string) string {
	text := "the annotation " + taints.PausedAnnotation + " stops new taints for " + conditions + "; existing taints are still removed on recovery"
	if unreadable != "" {
		text += `. The value is neither "true" nor a list of conditions: ` + unreadable
	}
	return text
}

// Observed says for which conditions taints are only reported from now on.
func Observed(conditions string) string {
	return "mode Observe for " + conditions + ": taints are reported and not set, and existing ones are removed"
}

// Enforced says that taints are set again.
func Enforced(conditions string) string {
	return "mode Enforce again for " + conditions + ": taints are set"
}

// Resumed says that a pause is over, whether contests are over with it, and whether the
// maintenance of the Node still stops new taints.
func Resumed(isForgiven, isMaintenance bool) string {
	text := "the annotation " + taints.PausedAnnotation + " was removed; taints are set again"
	if isForgiven {
		text += ", including those that someone removed"
	}
	if isMaintenance {
		text += ", when the maintenance of the Node has ended"
	}
	return text
}

// RecordReadable says that this agent is active again.
func RecordReadable(own string) string {
	return "the record on the Node is no longer from a newer release; this agent, " + own + ", is active on this Node again"
}

// RecordUnreadable says what follows from a record that cannot be read.
func RecordUnreadable(err error) string {
	return err.Error() + "; a taint that may not be taintlet's is not removed"
}

// SoftSet says that a soft taint is set, or would be.
func SoftSet(taint taints.Taint, sample string, held Hold) string {
	return sample + "; beyond the early threshold: early taint " + taint.String() + unless(held)
}

// SoftCleared says that a soft taint is no longer needed.
func SoftCleared(taint taints.Taint, sample string, held Hold) string {
	return sample + "; far from the early threshold: removes early taint " + taint.String() + unless(held)
}

// unless says what keeps a soft taint from the Node.
func unless(held Hold) string {
	switch held {
	case HeldObserved:
		return " (not in mode Observe)"
	case HeldPaused, HeldMaintenance:
		return ", when nothing holds it back (" + string(held) + ")"
	}
	return ""
}
