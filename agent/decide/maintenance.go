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

// Maintenance returns the type of the Node condition by which the Node is under
// maintenance; empty: it is not. Peers are told.
func (s *State) Maintenance() string { return s.pause.maintenance }
