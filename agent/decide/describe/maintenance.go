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
	return "while the annotation " + taints.PausedAnnotation + " is there"
}
