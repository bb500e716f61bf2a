package decide

import (
	"slices"
	"strings"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// pause says for which conditions a person has stopped additions, or for all of them
// the maintenance of the Node.
type pause struct {
	// conditions are those that the annotation names, in the configuration's order. The
	// slice is replaced, never changed.
	conditions []probes.Condition
	// maintenance is the type of the Node condition by which the Node is under
	// maintenance, which stops additions for all conditions; empty: it is not.
	maintenance string
	// unreadable is the annotation's value when it says neither "true", "false"
	// nor a list of conditions. Whoever wrote it wanted to stop something, so
	// everything is stopped.
	unreadable string
	// ending are those of the conditions whose pause is over, but for a token of the
	// write budget.
	ending []probes.Condition
}

// isEnding reports whether the pause of a condition waits for its end.
func (p pause) isEnding(name probes.Condition) bool { return slices.Contains(p.ending, name) }

// has reports whether additions for a condition are stopped.
func (p pause) has(name probes.Condition) bool { return p.holds(name) != "" }

// byPerson reports whether the annotation stops additions for a condition.
func (p pause) byPerson(name probes.Condition) bool { return slices.Contains(p.conditions, name) }

// holds says what stops additions for a condition; empty: nothing does.
func (p pause) holds(name probes.Condition) describe.Hold {
	switch {
	case p.byPerson(name):
		return describe.HeldPaused
	case p.maintenance != "":
		return describe.HeldMaintenance
	}
	return ""
}

func (p pause) equal(other pause) bool {
	return p.unreadable == other.unreadable && slices.Equal(p.conditions, other.conditions) && p.maintenance == other.maintenance
}

// parsePause reads the annotation taintlet.dev/paused: "true", or conditions
// separated by commas.
func parsePause(value string, policy *Policy) pause {
	switch value {
	case "", "false":
		return pause{}
	case "true":
		return pause{conditions: policy.names()}
	}
	var listed []probes.Condition
	for word := range strings.SplitSeq(value, ",") {
		name := probes.Condition(strings.TrimSpace(word))
		if _, known := policy.Condition(name); !known {
			return pause{conditions: policy.names(), unreadable: describe.Cut(value)}
		}
		listed = append(listed, name)
	}
	return pause{conditions: listed}.inOrder(policy)
}

// pauseOf reads what stops additions on a Node: the annotation and the maintenance.
func pauseOf(node *taints.Node, policy *Policy) pause {
	p := parsePause(node.Annotations[taints.PausedAnnotation], policy)
	p.maintenance = MaintenanceOf(node, policy.Maintenance)
	return p
}

// PausedBy says what stops additions for a condition on a Node; empty: nothing does. An
// agent that runs may not have followed it yet.
func PausedBy(node *taints.Node, policy *Policy, name probes.Condition) describe.Hold {
	return pauseOf(node, policy).holds(name)
}

// inOrder returns the pause with each of its conditions once, in the
// configuration's order.
func (p pause) inOrder(policy *Policy) pause {
	listed := p.conditions
	p.conditions = nil
	for _, name := range policy.names() {
		if slices.Contains(listed, name) {
			p.conditions = append(p.conditions, name)
		}
	}
	return p
}

// String lists the conditions.
func (p pause) String() string {
	names := make([]string, len(p.conditions))
	for i, name := range p.conditions {
		names[i] = string(name)
	}
	return strings.Join(names, ", ")
}

// endsFor reports whether the pause of some condition is over with the next one: that
// by a person, or that by the maintenance.
func (p pause) endsFor(next pause) bool {
	if p.maintenance != "" && next.maintenance == "" {
		return true
	}
	return slices.ContainsFunc(p.conditions, func(name probes.Condition) bool { return !next.byPerson(name) })
}
