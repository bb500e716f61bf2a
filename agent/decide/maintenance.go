package decide

import (
	"slices"

	"github.com/taintlet/taintlet/taints"
)

// Drained is the type of the condition that a Node keeps after a drain. KEP-5683 leaves it to
// people to take it back, so it can still be there when the Node takes pods again.
const Drained = "Drained"

// MaintenanceOf returns the first of these types whose condition is True on a Node; empty:
// the Node is not under maintenance. A Node that is drained counts while it is cordoned.
func MaintenanceOf(node *taints.Node, types []string) string {
	for i := range node.Conditions {
		c := &node.Conditions[i]
		isBack := c.Type == Drained && !node.IsUnschedulable
		if c.Status == taints.ConditionTrue && !isBack && slices.Contains(types, c.Type) {
			return c.Type
		}
	}
	return ""
}
