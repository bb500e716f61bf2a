package describe

import (
	"time"

	"github.com/taintlet/taintlet/taints"
)

// The reasons of the Node condition for repairers while it is False. While it is True,
// its reason is that of the fault.
const (
	// ReasonNoRepair means that the host has no fault that a repair cures.
	ReasonNoRepair = "NoRepairNeeded"
	// ReasonRepairPending means that such a fault has not lasted long enough.
	ReasonRepairPending = "RepairPending"
	// ReasonCooldown means that the condition was True within the last hour.
	ReasonCooldown = "Cooldown"
)

// Repair is what the Node condition for repairers is rendered from.
type Repair struct {
	Needed bool
	// Kind is the Node condition with the fault, Reason that of the fault; empty: there is none.
	// Since is when the fault began.
	Kind, Reason string
	Since        time.Time
	// Next is when the status changes if the next samples are like the newest one; zero: it is not
	// known.
	Next time.Time
	// Rested is when the status may be True again; zero: now.
	Rested time.Time
	// Braked: peers have the same condition, so that the status stays False.
	Braked bool
	// Observed: the mode of that condition is Observe, so that the status stays False.
	Observed bool
}

// Node makes the Node condition of that type.
func (r Repair) Node(kind string, now time.Time) taints.NodeCondition {
	c := taints.NodeCondition{Type: kind, Status: taints.ConditionFalse, Reason: ReasonNoRepair}
	fault, next := "no fault that a reboot or a replacement of the host cures", ""
	if r.Reason != "" {
		fault, c.Reason = r.Reason+" since "+clockText(r.Since, now)+", see "+r.Kind, ReasonRepairPending
	}
	switch {
	case r.Needed:
		c.Status, c.Reason = taints.ConditionTrue, r.Reason
		if next = "a reboot or a replacement of the host cures this"; !r.Next.IsZero() {
			next = "recovering: False at " + clockText(nextMinute(r.Next), now) + " if samples stay good"
		}
	case r.Reason != "" && r.Observed:
		next = "mode Observe: would be True from " + clockText(nextMinute(r.Next), now)
	case r.Reason != "" && r.Braked:
		next = "held back by the fleet brake"
	case r.Reason != "":
		next = "True at " + clockText(nextMinute(r.Next), now) + " if it persists"
	}
	c.Message = join(fault, next)
	if !r.Needed && !r.Rested.IsZero() {
		c.Reason = ReasonCooldown
		c.Message = join(c.Message, "was True within the last hour; stays False until "+clockText(nextMinute(r.Rested), now))
	}
	return c
}
