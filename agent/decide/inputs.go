package decide

import (
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Slot says whether this Node holds one of the fleet's eviction slots.
type Slot uint8

const (
	// SlotUnknown means that the slots were not read yet, or the API server does not answer.
	// Decided taints stay, and no eviction begins.
	SlotUnknown Slot = iota
	// SlotNone means that there is none for this Node, or it was lost: step down.
	SlotNone
	// SlotHeld means that this Node may evict.
	SlotHeld
)

// SlotRequest is the decider's request for an eviction slot.
type SlotRequest uint8

const (
	// SlotUndecided means that nothing is known of the Node.
	SlotUndecided SlotRequest = iota
	// SlotNotNeeded means that no NoExecute pair of ours is on the Node or desired there.
	SlotNotNeeded
	// SlotRequested means that only a slot is missing before this Node evicts.
	SlotRequested
	// SlotInUse means that the Node carries a NoExecute pair of ours, or is about to.
	SlotInUse
)

// Peers are the newest answers of the agents on other Nodes. The zero value means that there are
// none.
type Peers struct {
	// Known is the number of peers; negative: not known yet.
	Known int
	// Rounds counts how often they were queried.
	Rounds uint64
	// Shares by condition.
	Shares map[probes.Condition]Share
}

// Share is how many peers reported their level of a condition within the last minute, and how many
// of these have it Degraded, or would have without the fleet brake.
type Share struct {
	Asked, Bad int
	// ZoneAsked and ZoneBad count the peers in this Node's zone; 0: the zone is not known.
	ZoneAsked, ZoneBad int
}

// With returns the share with one peer more. isNear: the peer is in this Node's zone.
func (s Share) With(isBad, isNear bool) Share {
	bad := 0
	if isBad {
		bad = 1
	}
	s.Asked, s.Bad = s.Asked+1, s.Bad+bad
	if isNear {
		s.ZoneAsked, s.ZoneBad = s.ZoneAsked+1, s.ZoneBad+bad
	}
	return s
}

// zone returns the share of the peers in the own Node's zone.
func (s Share) zone() Share { return Share{Asked: s.ZoneAsked, Bad: s.ZoneBad} }

// reaches reports whether enough peers have told their level, and this percentage of them and this
// host have the condition.
func (s Share) reaches(percent, minPeers int) bool {
	return s.Asked >= minPeers && 100*(s.Bad+1) >= percent*(s.Asked+1)
}

// Inputs are the changes since the last Step.
type Inputs struct {
	Observations []probes.Observation
	// Node is the newest version seen, which nothing changes between Steps; nil while there is
	// none.
	Node *Node
	// NodeAt is when that version was seen; zero: now.
	NodeAt time.Time
	// Facts of the cluster.
	Facts taints.Facts
	// Written: the state that the last Decision desired was written to Node.
	Written bool
	// Answer is the Node as a write left it; nil: there was none. Node may be newer.
	Answer *taints.Node
	// Refresh: the heartbeat of our conditions is due.
	Refresh bool
	// Slot is the state of this Node's eviction slot.
	Slot Slot
	// Peers are the answers of the agents on other Nodes.
	Peers Peers
	// AnswersSince is when the API server most recently answered again after it had not answered a
	// write; zero: it has answered each.
	AnswersSince time.Time
}

// Decision is the result of one Step.
type Decision struct {
	// Desired is the desired state of the Node; nil when the Node has it.
	Desired *taints.Desired
	// Notices tell what happened, in order.
	Notices []Notice
	// Slot is the request for an eviction slot.
	Slot SlotRequest
	// Adopted is the heartbeat, by the wall clock, of conditions on the Node that a restarted agent
	// found to be as it would write them. The next heartbeat is due one interval after it. Zero:
	// nothing was adopted now.
	Adopted time.Time
}

// Node is a Node as Step needs it: the object and its record, read once.
type Node struct {
	*taints.Node
	record    Record
	recordErr error
}

// Read prepares a Node for Step.
func Read(node *taints.Node) *Node {
	r, err := parseRecord(node.Annotations[taints.RecordAnnotation])
	return &Node{node, r, err}
}

// isControlPlane reports whether the Node is one of the control plane; false where it is not known.
func (n *Node) isControlPlane() bool {
	if n == nil {
		return false
	}
	for _, label := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		if _, found := n.Labels[label]; found {
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

// isOurs reports whether taintlet writes the Node conditions of this type.
func isOurs(kind string, policy *Policy) bool {
	name, found := conditionName(kind)
	return kind == RepairType || found && slices.ContainsFunc(policy.Conditions, func(c Condition) bool { return c.Name == name })
}

// RepairType is the type of the Node condition for programs that reboot or replace hosts.
const RepairType = conditionPrefix + "RepairNeeded"
