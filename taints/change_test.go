package taints

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A release that was decided while the kubelet was content must not be written
// over its condition that has become True meanwhile: then the controller wants
// the pair.
func TestChangeFitsOnlyWhileNobodyElseWantsThePair(t *testing.T) {
	pair := Pair{corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule}
	node := func(status corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{
			Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: pair.Key, Effect: pair.Effect}}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: status}}},
		}
	}
	release := Change{Owned: []Pair{pair}}
	for _, test := range []struct {
		name        string
		base, fresh corev1.ConditionStatus
		want        bool
	}{
		{"nothing changed", corev1.ConditionFalse, corev1.ConditionFalse, true},
		{"the kubelet wants it now", corev1.ConditionFalse, corev1.ConditionTrue, false},
		{"the kubelet wants it no more", corev1.ConditionTrue, corev1.ConditionFalse, false},
		{"the kubelet fell silent", corev1.ConditionFalse, corev1.ConditionUnknown, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := release.StillFits(node(test.base), node(test.fresh)); got != test.want {
				t.Errorf("fits: %t", got)
			}
		})
	}
}

// A taint that somebody took off while it was being written is not put back by
// that write: whether it is a loss or a veto is decided first.
func TestTaintRemovedMeanwhileIsDecidedAnew(t *testing.T) {
	ours := corev1.Taint{Key: corev1.TaintNodeMemoryPressure, Effect: corev1.TaintEffectNoExecute}
	more := corev1.Taint{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule}
	base := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{ours}}}
	change := Change{Taints: []corev1.Taint{ours, more}, Owned: []Pair{PairOf(ours)}}
	if !change.StillFits(base, base.DeepCopy()) {
		t.Error("does not fit an unchanged Node")
	}
	if change.StillFits(base, &corev1.Node{}) {
		t.Error("fits a Node from which somebody took our taint")
	}
}
