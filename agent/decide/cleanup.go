package decide

import (
	"slices"
	"time"

	"github.com/taintlet/taintlet/taints"
)

// Cleanup returns what is desired of a Node that has no agent any
// more: nothing of taintlet's taints, record, held annotation, conditions. A
// taint that the kubelet's own condition asks for is left to the lifecycle
// controller. stays are pairs that the record names and that
// neither this configuration nor a built-in rule can produce: they may not be
// removed. While there are any, the record stays too. The annotation
// taintlet.dev/paused always stays: a person put it there. A record that cannot be read is
// an error: what it names would be forgotten.
func Cleanup(policy *Policy, facts taints.Facts, node *taints.Node) (desired taints.Desired, stays []taints.Pair, err error) {
	read := Read(node)
	if read.recordErr != nil {
		return desired, nil, read.recordErr
	}
	ours := ledger{policy: policy, owned: read.record.Owned}
	desired.Owned = ours.mayRemove(facts, read)
	stays = ours.unasked(read, ours.owned)
	desired.Gone = []string{RepairType}
	desired.Annotations = map[string]string{taints.HeldAnnotation: ""}
	if len(stays) == 0 {
		desired.Annotations[taints.RecordAnnotation] = ""
	}
	for _, name := range policy.names() {
		desired.Gone = append(desired.Gone, ConditionType(name))
	}
	return desired, stays, nil
}

// IsTouched reports whether a Node carries anything of taintlet's that a
// cleanup would remove.
func IsTouched(node *taints.Node, policy *Policy) bool {
	for _, key := range []string{taints.RecordAnnotation, taints.HeldAnnotation} {
		if _, found := node.Annotations[key]; found {
			return true
		}
	}
	return slices.ContainsFunc(node.Conditions, func(c taints.NodeCondition) bool { return isOurs(c.Type, policy) })
}

// LastSign is when taintlet most recently wrote the Node. The API server notes that by
// its own clock. Where it does not, the clock of the host that wrote says: its newest
// heartbeat or decision. Zero when that cannot be told.
func LastSign(node *taints.Node, policy *Policy) time.Time {
	if at := node.WrittenAt(); !at.IsZero() {
		return at
	}
	last := LastHeartbeat(node, policy)
	if decided := readWall(Read(node).record.Time); decided.After(last) {
		last = decided
	}
	return last
}

// LastHeartbeat is the newest time of taintlet's conditions on a Node, by the clock of
// the host that wrote. Zero when there are none.
func LastHeartbeat(node *taints.Node, policy *Policy) (newest time.Time) {
	for _, c := range node.Conditions {
		if isOurs(c.Type, policy) {
			newest = later(newest, c.LastHeartbeatTime)
		}
	}
	return newest
}
