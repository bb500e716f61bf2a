package decide

import (
	"slices"
	"strings"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Node is a Node as Step needs it: the object and its record, read once.
type Node struct {
	*taints.Node
	record    record
	recordErr error
}

// Read prepares a Node for Step.
func Read(node *taints.Node) *Node {
	r, err := parseRecord(node.Annotations[taints.RecordAnnotation])
	return &Node{node, r, err}
}

func isControlPlane(node *taints.Node) bool {
	for _, label := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		if _, found := node.Labels[label]; found {
			return true
		}
	}
	return false
}

// conditionPrefix makes our condition types of the conditions' names.
const conditionPrefix = "Host"

// ConditionType returns the type of our Node condition.
func ConditionType(name probes.Condition) string {
	return conditionPrefix + string(name)
}

// conditionName returns the condition that a Node condition of ours is about.
func conditionName(kind string) (name probes.Condition, isOurs bool) {
	text, isOurs := strings.CutPrefix(kind, conditionPrefix)
	return probes.Condition(text), isOurs
}

// isOurs reports whether a Node condition's type is one of taintlet's.
func isOurs(kind string, policy *Policy) bool {
	name, found := conditionName(kind)
	return kind == RepairType || found && slices.ContainsFunc(policy.Conditions, func(c Condition) bool { return c.Name == name })
}

// RepairType is the type of the Node condition for programs that reboot or replace hosts.
const RepairType = conditionPrefix + "RepairNeeded"
