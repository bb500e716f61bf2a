package taints

import (
	"slices"
	"strings"
)

// Desired is the complete state that taintlet wants on the Node, never a difference. A Desired can
// therefore be lost, or replaced by a newer one, without harm.
type Desired struct {
	// Taints are ours, in order. Those of other programs are not part of it.
	Taints []Taint
	// Owned are the pairs that may be replaced or removed.
	Owned []Pair
	// Annotations are ours; an empty value means that the annotation must not be there.
	Annotations map[string]string
	// Conditions are ours; none means that nodes/status is not written. Times
	// are added as they are written, but for a lastTransitionTime that is given.
	Conditions []NodeCondition
	// Gone are types of our conditions that must not be on the Node.
	Gone []string
}

// Differs reports whether the node lacks any of the desired taints or
// annotations, and returns the taints that it should carry.
func (d Desired) Differs(node *Node) (next []Taint, differs bool) {
	next, _, _ = Plan(node.Taints, d.Owned, d.Taints)
	return next, !Equal(next, node.Taints) || d.AnnotationsDiffer(node)
}

// AnnotationsDiffer reports whether the node lacks any of the desired annotations.
func (d Desired) AnnotationsDiffer(node *Node) bool {
	for key, value := range d.Annotations {
		current, found := node.Annotations[key]
		if current != value || found != (value != "") {
			return true
		}
	}
	return false
}

// maxAnnotations is how long all annotations of an object may be together, keys
// and values, in bytes (TotalAnnotationSizeLimitB in
// k8s.io/apimachinery/pkg/api/validation).
const maxAnnotations = 256 << 10

// MaxForeignAnnotations is how many annotations of other programs a Node can have before the
// admission policy keeps the agent from changing its own: taintlet.loop in
// deploy/helm/taintlet/templates/_helpers.tpl, which explains the bound.
const MaxForeignAnnotations = 500

// AnnotationsChangeable reports whether the admission policy lets the agent of the
// node change annotations.
func AnnotationsChangeable(node *Node) bool {
	foreign := len(node.Annotations)
	for _, own := range []string{RecordAnnotation, HeldAnnotation} {
		if _, found := node.Annotations[own]; found {
			foreign--
		}
	}
	return foreign <= MaxForeignAnnotations
}

// AnnotationsFit reports whether the API server would accept the desired annotations beside those
// that the node has.
func (d Desired) AnnotationsFit(node *Node) bool {
	if !AnnotationsChangeable(node) {
		return false
	}
	size := 0
	for key, value := range node.Annotations {
		if _, replaced := d.Annotations[key]; !replaced {
			size += len(key) + len(value)
		}
	}
	for key, value := range d.Annotations {
		if value != "" {
			size += len(key) + len(value)
		}
	}
	return size <= maxAnnotations
}

// StillFits reports whether a decision made on base can be written to fresh unchanged. It can if
// our record is unchanged, the same pairs would be ours, and the lifecycle controller asks for the
// same pairs among them. Otherwise the record would be wrong, or a pair that must stay would be
// removed.
func (d Desired) StillFits(base, fresh *Node) bool {
	_, before, lostBefore := Plan(base.Taints, d.Owned, d.Taints)
	_, after, lostAfter := Plan(fresh.Taints, d.Owned, d.Taints)
	return base.UID == fresh.UID &&
		base.Annotations[RecordAnnotation] == fresh.Annotations[RecordAnnotation] &&
		slices.Equal(before, after) && slices.Equal(lostBefore, lostAfter) &&
		!slices.ContainsFunc(d.Owned, func(p Pair) bool { return ControllerWants(base, p) != ControllerWants(fresh, p) })
}

// ApplyTo returns the node as it would be after the write, without asking an API server and without
// the times of conditions. It serves --dry-run=client.
func (d Desired) ApplyTo(node *Node) *Node {
	after := node.Clone()
	after.Taints, _ = d.Differs(node)
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	for key, value := range d.Annotations {
		if value == "" {
			delete(after.Annotations, key)
		} else {
			after.Annotations[key] = value
		}
	}
	for _, condition := range d.Conditions {
		if current := after.Condition(condition.Type); current != nil {
			*current = condition
		} else {
			after.Conditions = append(after.Conditions, condition)
		}
	}
	after.Conditions = slices.DeleteFunc(after.Conditions, func(condition NodeCondition) bool {
		return slices.Contains(d.Gone, condition.Type)
	})
	return after
}

// ControllerWants reports whether the lifecycle controller derives the pair
// from a condition that is True now.
func ControllerWants(node *Node, p Pair) bool {
	kind, reconciled := LifecycleCondition(p)
	if !reconciled {
		return false
	}
	condition := node.Condition(kind)
	return condition != nil && condition.Status == ConditionTrue
}

// maxMessage is the longest message of a condition or an Event, in bytes. The
// admission policies let 2 KiB pass.
const maxMessage = 2000

// Message cuts a message to the length that the admission policies allow. Long or many paths, and
// long keys of taints, can make a message longer.
func Message(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	const more = "…"
	return strings.ToValidUTF8(text[:maxMessage-len(more)], "") + more
}
