// Package describe writes the texts about decisions: those of Node conditions, of Events and of the
// log. It decides nothing.
package describe

import (
	"github.com/taintlet/taintlet/taints"
)

// Hold says in one word what keeps a condition from its taint, from an eviction, or
// from clearing. Empty: nothing does.
type Hold string

// What can hold a condition back.
const (
	// HeldContested means that another client removed the taint twice within a minute.
	HeldContested Hold = "Contested"
	// HeldVetoed means that another client removed a NoExecute taint.
	HeldVetoed Hold = "Vetoed"
	// HeldAcknowledged means that an operator removed the taint of a rule with ClearManual.
	HeldAcknowledged Hold = "Acknowledged"
	// HeldPaused means that an operator paused the condition.
	HeldPaused Hold = "Paused"
	// HeldObserved means that the mode of the condition is Observe.
	HeldObserved Hold = "Observe"
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
	// HeldAwaitsRemoval means that the condition is OK, and its taint stays until an operator
	// removes it.
	HeldAwaitsRemoval Hold = "AwaitsRemoval"
	// HeldControlPlane means that a Node of the control plane does not evict.
	HeldControlPlane Hold = "ControlPlane"
)

// MaintenanceBegins says by which Node condition maintenance stops new taints.
func MaintenanceBegins(kind string) string {
	return "the Node is under maintenance, because its condition " + kind + " is True: no new taints; existing taints are still removed on recovery"
}

// MaintenanceEnds says that a Node condition no longer stops new taints, and for which
// conditions the annotation still does; empty: for none.
func MaintenanceEnds(kind, paused string) string {
	text := "the Node is no longer under maintenance by its condition " + kind
	if paused != "" {
		return text + "; the annotation " + taints.PausedAnnotation + " still stops new taints for " + paused
	}
	return text + "; taints are set again"
}

// WouldSet says which taints would be there.
func WouldSet(taints string) string { return "mode Observe: would set " + taints }

// NoNewTaint says that no taint follows a new level while something stops new taints;
// empty: nothing does.
func NoNewTaint(by Hold) string {
	if by == "" {
		return ""
	}
	return "no new taint " + stoppedWhile(by)
}

// stoppedWhile says for how long a person, or the maintenance of the Node, stops new taints.
func stoppedWhile(by Hold) string {
	if by == HeldMaintenance {
		return "while the Node is under maintenance"
	}
	return "while the annotation " + taints.PausedAnnotation + " is on the Node"
}
