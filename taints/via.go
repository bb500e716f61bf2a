// Package taints knows how taints stay on a Node. It knows which pairs a control plane reconciles,
// what to write instead, and what may be removed. It does not know a host's health and sends no
// requests: package apiserver does.
package taints

import "strings"

// Via says how a pair stays on the Node.
type Via string

const (
	// Direct pairs are written as asked: no controller reconciles them.
	Direct Via = "direct"
	// Kept pairs belong to the node-lifecycle-controller, which would delete
	// them; the admission policy of deploy/keep.yaml puts those that the
	// annotation HeldAnnotation names back into the controller's own writes.
	Kept Via = "kept"
	// StandIn is another key in place of a pair that would not stay.
	StandIn Via = "stand-in"
)

// Annotations of taintlet on its Node.
const (
	// RecordAnnotation holds the decider's whole memory as versioned JSON.
	RecordAnnotation = "taintlet.dev/record"
	// HeldAnnotation lists the keys of the kept pairs, separated by commas. It
	// is what deploy/keep.yaml reads.
	HeldAnnotation = "taintlet.dev/held"
	// PausedAnnotation is set by operators. "true", or a list of conditions, stops new taints.
	// taintlet reads it and never writes it.
	PausedAnnotation = "taintlet.dev/paused"
	// ModeAnnotation is set by operators. With "Observe", taintlet reports the taints of this Node
	// and sets none. taintlet reads it and never writes it.
	ModeAnnotation = "taintlet.dev/mode"
)

// DefaultStandInPrefix is the DNS prefix of stand-in keys.
const DefaultStandInPrefix = "taintlet.dev"

// EarlySuffix ends the keys of early taints, which otherwise are those of stand-ins.
const EarlySuffix = "-early"

// AutoscalerPrefix is the DNS prefix of keys that cluster-autoscaler ignores
// (StatusTaintPrefix in cluster-autoscaler/utils/taints/taints.go, release 1.36.1): it
// leaves them out of its templates, and a Node that has them counts as ready.
const AutoscalerPrefix = "status-taint.cluster-autoscaler.kubernetes.io"

// IsUnreadyToAutoscaler reports whether cluster-autoscaler counts a Node with a taint of
// this key as unready (notReadyTaints in cluster-autoscaler/utils/kubernetes/ready.go,
// release 1.36.1).
func IsUnreadyToAutoscaler(key string) bool {
	return key == "node.kubernetes.io/disk-pressure" || key == "node.kubernetes.io/network-unavailable"
}

// KeepPolicyName is the name of the policy of deploy/keep.yaml and of its
// binding.
const KeepPolicyName = "taintlet-keep"

// HeldKeys are the keys that the HeldAnnotation of a Node lists. An account that may write the
// annotation can list any key.
func HeldKeys(node *Node) []string {
	return strings.Split(node.Annotations[HeldAnnotation], ",")
}

// Facts are what Resolve has to know of the cluster.
type Facts struct {
	// KeepPolicy: the binding of deploy/keep.yaml is there. KeepVersion changes with the
	// binding and with the policy.
	KeepPolicy  bool
	KeepVersion string
	// StandInPrefix is the DNS prefix of stand-in keys.
	StandInPrefix string
}

// lifecycleConditions maps the keys whose NoSchedule pair the
// node-lifecycle-controller reconciles to the Node condition from which it
// does (nodeConditionToTaintKeyStatusMap in
// pkg/controller/nodelifecycle/node_lifecycle_controller.go).
func lifecycleConditions() map[string]string {
	return map[string]string{
		"node.kubernetes.io/memory-pressure":     "MemoryPressure",
		"node.kubernetes.io/disk-pressure":       "DiskPressure",
		"node.kubernetes.io/pid-pressure":        "PIDPressure",
		"node.kubernetes.io/network-unavailable": "NetworkUnavailable",
	}
}

// LifecycleCondition returns the Node condition from which the
// node-lifecycle-controller derives the pair; false for every pair that it
// leaves alone.
func LifecycleCondition(p Pair) (string, bool) {
	if p.Effect != NoSchedule {
		return "", false
	}
	condition, ok := lifecycleConditions()[p.Key]
	return condition, ok
}

// Reserved returns the owner of a key that taintlet never writes and never removes, with any
// effect; empty for a key that a rule may use.
func Reserved(key string) (owner string) {
	switch key {
	case "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.cloudprovider.kubernetes.io/uninitialized":
		return "the control plane"
	case "node.kubernetes.io/unschedulable", "node.kubernetes.io/out-of-service":
		return "administrators"
	}
	return ""
}

// Resolve returns how the wanted pair can stay on a Node of this cluster, and
// the pair to write for that.
func Resolve(want Pair, cluster Facts) (Via, Pair) {
	if _, reconciled := LifecycleCondition(want); !reconciled {
		return Direct, want
	}
	if cluster.KeepPolicy {
		return Kept, want
	}
	return StandIn, StandInFor(want, cluster.StandInPrefix)
}

// StandInFor returns the pair that stands in for p: the same name under
// another prefix. A stand-in never evicts: NoExecute becomes NoSchedule.
func StandInFor(p Pair, prefix string) Pair {
	name, effect := p.standIn()
	return Pair{prefix + "/" + name, effect}
}

// StandsInFor reports whether p is StandInFor(other, prefix). It is called for each pair that a
// record names, and allocates nothing.
func (p Pair) StandsInFor(other Pair, prefix string) bool {
	name, effect := other.standIn()
	rest, found := strings.CutPrefix(p.Key, prefix)
	return found && p.Effect == effect && len(rest) == len(name)+1 && rest[0] == '/' && rest[1:] == name
}

// standIn is the name and the effect of the pair that stands in for p.
func (p Pair) standIn() (name string, effect Effect) {
	name, effect = p.Key[strings.LastIndexByte(p.Key, '/')+1:], p.Effect
	if effect == NoExecute {
		effect = NoSchedule
	}
	return name, effect
}
