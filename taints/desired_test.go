package taints

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A release that was decided while the kubelet was content must not be written
// over its condition that has become True meanwhile: then the controller wants
// the pair.
func TestDesiredFitsOnlyWhileNobodyElseWantsThePair(t *testing.T) {
	pair := Pair{corev1.TaintNodeDiskPressure, NoSchedule}
	node := func(status ConditionStatus) *Node {
		return &Node{
			Taints:     []Taint{{Key: pair.Key, Effect: pair.Effect}},
			Conditions: []NodeCondition{{Type: "DiskPressure", Status: status}},
		}
	}
	release := Desired{Owned: []Pair{pair}}
	for _, test := range []struct {
		name        string
		base, fresh ConditionStatus
		want        bool
	}{
		{"nothing changed", ConditionFalse, ConditionFalse, true},
		{"the kubelet wants it now", ConditionFalse, ConditionTrue, false},
		{"the kubelet wants it no more", ConditionTrue, ConditionFalse, false},
		{"the kubelet fell silent", ConditionFalse, ConditionUnknown, true},
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
	ours := Taint{Key: corev1.TaintNodeMemoryPressure, Effect: NoExecute}
	more := Taint{Key: corev1.TaintNodeDiskPressure, Effect: NoSchedule}
	base := &Node{Taints: []Taint{ours}}
	desired := Desired{Taints: []Taint{ours, more}, Owned: []Pair{ours.Pair()}}
	if !desired.StillFits(base, base.Clone()) {
		t.Error("does not fit an unchanged Node")
	}
	if desired.StillFits(base, &Node{}) {
		t.Error("fits a Node from which somebody took our taint")
	}
}
