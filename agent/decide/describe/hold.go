// Package describe turns what the decider came to into the texts that people read: those
// of Node conditions, of Events and of the log. It decides nothing.
package describe

// Hold says in one word what keeps a condition from its taint, from an eviction, or
// from clearing. Empty: nothing does.
type Hold string

// What can hold a condition back.
const (
	// HeldContested means that others removed the taint and its stand-in twice.
	HeldContested Hold = "Contested"
	// HeldVetoed means that others removed a NoExecute taint.
	HeldVetoed Hold = "Vetoed"
	// HeldAcknowledged means that others removed a taint that waited for that.
	HeldAcknowledged Hold = "Acknowledged"
	// HeldPaused means that a person paused the condition.
	HeldPaused Hold = "Paused"
	// HeldMaintenance means that the Node is under maintenance.
	HeldMaintenance Hold = "Maintenance"
	// HeldFleetBrake means that a large part of the fleet has the condition.
	HeldFleetBrake Hold = "FleetBrake"
	// HeldWriteBudget means that the write budget has no token.
	HeldWriteBudget Hold = "WriteBudget"
	// HeldEvictionSlot means that this Node has no eviction slot.
	HeldEvictionSlot Hold = "EvictionSlot"
	// HeldEvictionInterval means that this Node evicted a short time ago.
	HeldEvictionInterval Hold = "EvictionInterval"
	// HeldAwaitsRemoval means that the condition is OK, and its taint stays until somebody
	// removes it.
	HeldAwaitsRemoval Hold = "AwaitsRemoval"
	// HeldControlPlane means that a Node of the control plane does not evict.
	HeldControlPlane Hold = "ControlPlane"
)

// Known returns the Hold, empty if it is none of those above.
func (h Hold) Known() Hold {
	switch h {
	case HeldContested, HeldVetoed, HeldAcknowledged, HeldAwaitsRemoval, HeldPaused, HeldMaintenance, HeldFleetBrake, HeldWriteBudget, HeldEvictionSlot, HeldEvictionInterval, HeldControlPlane:
		return h
	}
	return ""
}
