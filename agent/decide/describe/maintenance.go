package describe

import "github.com/taintlet/taintlet/taints"

// MaintenanceBegins says by which Node condition maintenance stops new taints.
func MaintenanceBegins(kind string) string {
	return "the Node is under maintenance, because its condition " + kind + " is True: no new taints; taints that stand go with recovery as always"
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

// NoNewTaint says that no taint follows a new level while something stops new taints;
// empty: nothing does.
func NoNewTaint(by Hold) string {
	switch by {
	case HeldPaused:
		return "no new taint while the annotation " + taints.PausedAnnotation + " is there"
	case HeldMaintenance:
		return "no new taint while the Node is under maintenance"
	}
	return ""
}
