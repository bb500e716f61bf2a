package taints

import (
	"maps"
	"slices"
	"time"
)

// Node holds the parts of a Node that taintlet reads. The API's own types link net/http, which the
// packages that decide do not need.
type Node struct {
	Name string
	// UID tells a Node from a later one of the same name.
	UID string
	// ResourceVersion is the API server's version of the object.
	ResourceVersion     string
	Labels, Annotations map[string]string
	Taints              []Taint
	Conditions          []NodeCondition
	// IsDeleted: its deletion has begun. IsUnschedulable: it is cordoned.
	IsDeleted, IsUnschedulable bool
	// LastWriter is the field manager, other than taintlet, that wrote the taints
	// last; empty when it is not known.
	LastWriter string
	// SpecWrittenAt and StatusWrittenAt are when taintlet most recently wrote its
	// taints and annotations, and its conditions, by the API server's clock; zero
	// when that is not known.
	SpecWrittenAt, StatusWrittenAt time.Time
	// OS and Kernel are those that the kubelet reports, such as linux and 6.8.0-45-generic.
	OS, Kernel string
}

// NodeCondition is a condition of a Node.
type NodeCondition struct {
	Type            string
	Status          ConditionStatus
	Reason, Message string
	// LastHeartbeatTime is when it was written, LastTransitionTime when its status
	// last changed.
	LastHeartbeatTime, LastTransitionTime time.Time
}

// ConditionStatus says whether a condition holds.
type ConditionStatus string

// The statuses of a condition.
const (
	ConditionTrue    ConditionStatus = "True"
	ConditionFalse   ConditionStatus = "False"
	ConditionUnknown ConditionStatus = "Unknown"
)

// Has reports whether the Node carries the pair.
func (n *Node) Has(p Pair) bool { return index(n.Taints, p) >= 0 }

// Condition returns the condition of a type, nil when the Node has none.
func (n *Node) Condition(kind string) *NodeCondition {
	for i := range n.Conditions {
		if n.Conditions[i].Type == kind {
			return &n.Conditions[i]
		}
	}
	return nil
}

// Transitions returns the conditions with their LastTransitionTime, which moves with the status
// only: a condition that has the status that it has on this Node keeps the time of that. The other
// conditions keep the time that they were given.
func (n *Node) Transitions(conditions []NodeCondition) []NodeCondition {
	conditions = slices.Clone(conditions)
	for i := range conditions {
		if before := n.Condition(conditions[i].Type); before != nil && before.Status == conditions[i].Status {
			conditions[i].LastTransitionTime = before.LastTransitionTime
		}
	}
	return conditions
}

// WrittenAt returns when taintlet most recently wrote the Node, by the API server's
// clock; zero when that is not known.
func (n *Node) WrittenAt() time.Time {
	if n.StatusWrittenAt.After(n.SpecWrittenAt) {
		return n.StatusWrittenAt
	}
	return n.SpecWrittenAt
}

// Clone returns a copy that may be changed without changing the original.
func (n *Node) Clone() *Node {
	c := *n
	c.Labels, c.Annotations = maps.Clone(n.Labels), maps.Clone(n.Annotations)
	c.Taints, c.Conditions = slices.Clone(n.Taints), slices.Clone(n.Conditions)
	return &c
}
