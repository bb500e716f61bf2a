// Package taints knows how taints stay on a Node. It knows which pairs a control
// plane reconciles, what to write instead, and what may be removed. It knows
// nothing of a host's health and asks no API server: package apiserver does.
package taints

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Pair is a taint's identity: a Node holds each (key, effect) at most once,
// whatever its value.
type Pair struct {
	Key    string
	Effect corev1.TaintEffect
}

// PairOf returns the identity of a taint.
func PairOf(t corev1.Taint) Pair { return Pair{t.Key, t.Effect} }

// With is the taint of this identity with a value; empty: none.
func (p Pair) With(value string) corev1.Taint {
	return corev1.Taint{Key: p.Key, Value: value, Effect: p.Effect}
}

// String is the form in which kubectl shows a taint without a value.
func (p Pair) String() string { return p.Key + ":" + string(p.Effect) }

// MarshalText writes the form of String.
func (p Pair) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the form of String.
func (p *Pair) UnmarshalText(text []byte) error {
	key, effect, found := strings.Cut(string(text), ":")
	if !found || key == "" {
		return fmt.Errorf("pair %q is not of the form key:effect", text)
	}
	*p = Pair{key, corev1.TaintEffect(effect)}
	return nil
}

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
	// PausedAnnotation is for people: "true" or a list of conditions stops
	// additions. taintlet reads it and never writes it.
	PausedAnnotation = "taintlet.dev/paused"
)

// DefaultStandInPrefix is the DNS prefix of stand-in keys.
const DefaultStandInPrefix = "taintlet.dev"

// KeepPolicyName is the name of the policy of deploy/keep.yaml and of its
// binding.
const KeepPolicyName = "taintlet-keep"

// HeldKeys are the keys that the HeldAnnotation of a Node lists. Whoever may write
// the annotation may list any.
func HeldKeys(node *corev1.Node) []string {
	return strings.Split(node.Annotations[HeldAnnotation], ",")
}

// Facts are what Resolve has to know of the cluster.
type Facts struct {
	// LifecycleController: a node-lifecycle-controller reconciles the
	// well-known pairs. False only where the operator says so.
	LifecycleController bool
	// KeepPolicy: the binding of deploy/keep.yaml is there.
	KeepPolicy bool
	// StandInPrefix is the DNS prefix of stand-in keys.
	StandInPrefix string
}

// lifecycleConditions maps the keys whose NoSchedule pair the
// node-lifecycle-controller reconciles to the Node condition from which it
// does (nodeConditionToTaintKeyStatusMap in
// pkg/controller/nodelifecycle/node_lifecycle_controller.go).
func lifecycleConditions() map[string]corev1.NodeConditionType {
	return map[string]corev1.NodeConditionType{
		corev1.TaintNodeMemoryPressure:     corev1.NodeMemoryPressure,
		corev1.TaintNodeDiskPressure:       corev1.NodeDiskPressure,
		corev1.TaintNodePIDPressure:        corev1.NodePIDPressure,
		corev1.TaintNodeNetworkUnavailable: corev1.NodeNetworkUnavailable,
	}
}

// LifecycleCondition returns the Node condition from which the
// node-lifecycle-controller derives the pair; false for every pair that it
// leaves alone.
func LifecycleCondition(p Pair) (corev1.NodeConditionType, bool) {
	if p.Effect != corev1.TaintEffectNoSchedule {
		return "", false
	}
	condition, ok := lifecycleConditions()[p.Key]
	return condition, ok
}

// Reserved says whose a key is that taintlet never writes and never removes,
// with any effect; empty for a key that a rule may use.
func Reserved(key string) (owner string) {
	switch key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, "node.cloudprovider.kubernetes.io/uninitialized":
		return "the control plane"
	case corev1.TaintNodeUnschedulable, corev1.TaintNodeOutOfService:
		return "administrators"
	}
	return ""
}

// Resolve returns how the wanted pair can stay on a Node of this cluster, and
// the pair to write for that.
func Resolve(want Pair, cluster Facts) (Via, Pair) {
	if _, reconciled := LifecycleCondition(want); !reconciled || !cluster.LifecycleController {
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

// StandsInFor reports whether p is StandInFor(other, prefix). It is asked of
// each pair that a record names, and makes no garbage.
func (p Pair) StandsInFor(other Pair, prefix string) bool {
	name, effect := other.standIn()
	rest, found := strings.CutPrefix(p.Key, prefix)
	return found && p.Effect == effect && len(rest) == len(name)+1 && rest[0] == '/' && rest[1:] == name
}

// standIn is the name and the effect of the pair that stands in for p.
func (p Pair) standIn() (name string, effect corev1.TaintEffect) {
	name, effect = p.Key[strings.LastIndexByte(p.Key, '/')+1:], p.Effect
	if effect == corev1.TaintEffectNoExecute {
		effect = corev1.TaintEffectNoSchedule
	}
	return name, effect
}
