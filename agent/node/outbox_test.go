package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/taints"
)

// A condition that was Critical again and again while nothing could be written is
// announced once, and not a hundred times before its taint is set.
func TestEvictionIsAnnouncedOnce(t *testing.T) {
	o := NewOutbox(nil, nil, nil, nil, nil)
	for i := range 100 {
		o.Announce("HostPIDPressureCritical", "used all tasks", time.Unix(int64(i), 0))
		o.Announce("HostMemoryPressureCritical", "used all memory", time.Unix(int64(i), 0))
	}
	o.Put(&taints.Node{}, taints.Desired{})
	announced := (<-o.jobs).announce
	if len(announced) != 2 || announced[0].at != time.Unix(99, 0) || announced[1].at != time.Unix(99, 0) {
		t.Errorf("%d announcements: %v", len(announced), announced)
	}
}

// The watch shows a taint before the conditions of the same job are written. Then
// the taint is owned, and nothing else is new: the writer is at it already.
func TestOwnTaintsAreNothingNew(t *testing.T) {
	taint := taints.Taint{Key: corev1.TaintNodeMemoryPressure, Effect: taints.NoSchedule}
	desired := taints.Desired{
		Taints: []taints.Taint{taint}, Annotations: map[string]string{taints.RecordAnnotation: "1"},
		Conditions: []taints.NodeCondition{{Type: "HostMemoryPressure", Status: taints.ConditionTrue}},
	}
	before, landed := &taints.Node{}, &taints.Node{}
	landed.Taints, landed.Annotations = desired.Taints, desired.Annotations
	lost := landed.Clone()
	lost.Taints = nil
	for name, c := range map[string]struct {
		base  *taints.Node
		alter func(*taints.Desired)
		want  bool
	}{
		"owned since it landed":         {landed, func(*taints.Desired) {}, false},
		"lost since it landed":          {lost, func(*taints.Desired) {}, true},
		"another record":                {landed, func(c *taints.Desired) { c.Annotations = map[string]string{taints.RecordAnnotation: "2"} }, true},
		"other conditions":              {landed, func(c *taints.Desired) { c.Conditions = nil }, true},
		"another pair is to be removed": {landed, func(c *taints.Desired) { c.Taints = nil }, true},
	} {
		o := NewOutbox(nil, nil, nil, nil, nil)
		o.Put(before, desired)
		<-o.jobs // the writer is at it
		next := desired
		next.Owned = []taints.Pair{taint.Pair()}
		c.alter(&next)
		o.Put(c.base, next)
		if got := len(o.jobs) == 1; got != c.want {
			t.Errorf("%s: handed out again: %t, want %t", name, got, c.want)
		}
	}
}

// Conditions that were written and are gone are handed out again, although the same was
// handed out before. Before they are written nothing can have been removed.
func TestRemovedConditionsAreHandedOutAgain(t *testing.T) {
	desired := taints.Desired{Conditions: []taints.NodeCondition{{Type: "HostMemoryPressure", Status: taints.ConditionFalse}, {Type: "HostDiskPressure", Status: taints.ConditionFalse}}}
	bare, written := &taints.Node{}, &taints.Node{Conditions: desired.Conditions}
	half := &taints.Node{Conditions: desired.Conditions[:1]}
	o := NewOutbox(nil, nil, nil, nil, nil)
	putAgain := func(node *taints.Node) bool {
		o.Put(node, desired)
		return len(o.jobs) == 1
	}
	if !putAgain(bare) {
		t.Fatal("nothing was handed out")
	}
	<-o.jobs // the writer is at it
	if putAgain(bare) {
		t.Error("handed out twice before it was written")
	}
	o.Observe(Result{sequence: o.sequence, Node: written}, func(*taints.Node) bool { return false })
	if putAgain(written) {
		t.Error("handed out again although it is there")
	}
	if !putAgain(half) {
		t.Error("not handed out again although a condition was removed")
	}
}
