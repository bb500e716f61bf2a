package decide

import (
	"slices"

	"github.com/taintlet/taintlet/taints"
)

// MaintenanceOf returns the first of these types whose condition is True on a Node; empty:
// the Node is not under maintenance.
func MaintenanceOf(node *taints.Node, types []string) string {
	for i := range node.Conditions {
		if c := &node.Conditions[i]; c.Status == taints.ConditionTrue && slices.Contains(types, c.Type) {
			return c.Type
		}
	}
	return ""
}
