package decide

import (
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

func signOfLifeOn(node *taints.Node, policy *Policy) signOfLife {
	sign := signOfLife{record: node.Annotations[taints.RecordAnnotation]}
	for _, c := range node.Conditions {
		if isOurs(c.Type, policy) && c.LastHeartbeatTime.After(sign.heartbeat) {
			sign.heartbeat = c.LastHeartbeatTime
		}
	}
	return sign
}

func isControlPlane(node *taints.Node) bool {
	for _, label := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		if _, found := node.Labels[label]; found {
			return true
		}
	}
	return false
}
