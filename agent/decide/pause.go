package decide

import (
	"slices"
	"strings"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// pause says for which conditions a person has stopped additions.
type pause struct {
	// conditions are in the configuration's order. The slice is replaced, never
	// changed.
	conditions []probes.Condition
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

func (p pause) has(name probes.Condition) bool { return slices.Contains(p.conditions, name) }

func (p pause) equal(other pause) bool {
	return p.unreadable == other.unreadable && slices.Equal(p.conditions, other.conditions)
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

// IsPaused reports whether a Node's annotation taintlet.dev/paused stops additions for
// a condition. An agent that runs may not have followed it yet.
func IsPaused(node *taints.Node, policy *Policy, name probes.Condition) bool {
	return parsePause(node.Annotations[taints.PausedAnnotation], policy).has(name)
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

// endsFor reports whether the pause of some condition is over with the next one.
func (p pause) endsFor(next pause) bool {
	return slices.ContainsFunc(p.conditions, func(name probes.Condition) bool { return !next.has(name) })
}
