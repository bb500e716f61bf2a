package taints

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Change is what ought to stand on the Node: all of ours, never a difference,
// so that a Change that is lost or overtaken by a newer one costs nothing.
type Change struct {
	// Taints are ours, in order. Those of others are not part of a Change.
	Taints []corev1.Taint
	// Owned are the pairs that may be replaced or removed.
	Owned []Pair
	// Annotations are ours; an empty value means that the annotation is not to
	// be there.
	Annotations map[string]string
	// Conditions are ours; none means that nodes/status is not written. Times
	// are added as they are written, but for a lastTransitionTime that is given.
	Conditions []corev1.NodeCondition
	// Gone are types of ours that are not to be there.
	Gone []corev1.NodeConditionType
}

// Differs reports whether the node lacks any of the taints or annotations of
// the change, and returns the taints that it should carry.
func (c Change) Differs(node *corev1.Node) (next []corev1.Taint, differs bool) {
	next, _, _ = Plan(node.Spec.Taints, c.Owned, c.Taints)
	if !Equal(next, node.Spec.Taints) {
		return next, true
	}
	for key, value := range c.Annotations {
		current, found := node.Annotations[key]
		if current != value || found != (value != "") {
			return next, true
		}
	}
	return next, false
}

// maxAnnotations is how long all annotations of an object may be together, keys
// and values, in bytes (TotalAnnotationSizeLimitB in
// k8s.io/apimachinery/pkg/api/validation).
const maxAnnotations = 256 << 10

// MaxForeignAnnotations is how many annotations of others a Node may have for the
// admission policy to let its agent change the agent's own: taintlet.loop in
// deploy/helm/taintlet/templates/_helpers.tpl, which says why.
const MaxForeignAnnotations = 500

// AnnotationsChangeable reports whether the admission policy lets the agent of the
// node change annotations.
func AnnotationsChangeable(node *corev1.Node) bool {
	foreign := len(node.Annotations)
	for _, own := range []string{RecordAnnotation, HeldAnnotation} {
		if _, found := node.Annotations[own]; found {
			foreign--
		}
	}
	return foreign <= MaxForeignAnnotations
}

// AnnotationsFit reports whether the API server would take the annotations of the
// change beside those that the node has.
func (c Change) AnnotationsFit(node *corev1.Node) bool {
	if !AnnotationsChangeable(node) {
		return false
	}
	size := 0
	for key, value := range node.Annotations {
		if _, replaced := c.Annotations[key]; !replaced {
			size += len(key) + len(value)
		}
	}
	for key, value := range c.Annotations {
		if value != "" {
			size += len(key) + len(value)
		}
	}
	return size <= maxAnnotations
}

// StillFits reports whether a change that was decided on base can be written
// to fresh as it is. It can if nobody touched our record, the same pairs would
// be ours, and the lifecycle controller asks for the same ones of them.
// Otherwise the record would be wrong, or a pair would go that is to stay.
func (c Change) StillFits(base, fresh *corev1.Node) bool {
	_, before, lostBefore := Plan(base.Spec.Taints, c.Owned, c.Taints)
	_, after, lostAfter := Plan(fresh.Spec.Taints, c.Owned, c.Taints)
	return base.UID == fresh.UID &&
		base.Annotations[RecordAnnotation] == fresh.Annotations[RecordAnnotation] &&
		slices.Equal(before, after) && slices.Equal(lostBefore, lostAfter) &&
		!slices.ContainsFunc(c.Owned, func(p Pair) bool { return ControllerWants(base, p) != ControllerWants(fresh, p) })
}

// ApplyTo returns the node as it would be with the change, without any API
// server; the conditions come without times. It serves --dry-run=client.
func (c Change) ApplyTo(node *corev1.Node) *corev1.Node {
	after := node.DeepCopy()
	after.Spec.Taints, _ = c.Differs(node)
	if after.Annotations == nil {
		after.Annotations = map[string]string{}
	}
	for key, value := range c.Annotations {
		if value == "" {
			delete(after.Annotations, key)
		} else {
			after.Annotations[key] = value
		}
	}
	for _, condition := range c.Conditions {
		if current := Condition(after, condition.Type); current != nil {
			*current = condition
		} else {
			after.Status.Conditions = append(after.Status.Conditions, condition)
		}
	}
	after.Status.Conditions = slices.DeleteFunc(after.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return slices.Contains(c.Gone, condition.Type)
	})
	return after
}

// ControllerWants reports whether the lifecycle controller derives the pair
// from a condition that is True now.
func ControllerWants(node *corev1.Node, p Pair) bool {
	kind, reconciled := LifecycleCondition(p)
	if !reconciled {
		return false
	}
	condition := Condition(node, kind)
	return condition != nil && condition.Status == corev1.ConditionTrue
}

// Condition returns the node's condition of a type, nil when it has none.
func Condition(node *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == kind {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}
