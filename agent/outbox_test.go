package agent

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/taints"
)

// A condition that was Critical again and again while nothing could be written is
// announced once, and not a hundred times before its taint is set.
func TestEvictionIsAnnouncedOnce(t *testing.T) {
	o := newOutbox()
	for i := range 100 {
		o.announce(announcement{"HostPIDPressureCritical", "used all tasks", time.Unix(int64(i), 0)})
		o.announce(announcement{"HostMemoryPressureCritical", "used all memory", time.Unix(int64(i), 0)})
	}
	o.put(&taints.Node{}, taints.Change{})
	announced := (<-o.jobs).announce
	if len(announced) != 2 || announced[0].at != time.Unix(99, 0) || announced[1].at != time.Unix(99, 0) {
		t.Errorf("%d announcements: %v", len(announced), announced)
	}
}

// The watch shows a taint before the conditions of the same change are written. Then
// the taint is owned, and nothing else is new: the writer is at it already.
func TestOwnTaintsAreNoNewChange(t *testing.T) {
	taint := taints.Taint{Key: corev1.TaintNodeMemoryPressure, Effect: taints.NoSchedule}
	change := taints.Change{
		Taints: []taints.Taint{taint}, Annotations: map[string]string{taints.RecordAnnotation: "1"},
		Conditions: []taints.NodeCondition{{Type: "HostMemoryPressure", Status: taints.ConditionTrue}},
	}
	before, landed := &taints.Node{}, &taints.Node{}
	landed.Taints, landed.Annotations = change.Taints, change.Annotations
	lost := landed.Clone()
	lost.Taints = nil
	for name, c := range map[string]struct {
		base  *taints.Node
		alter func(*taints.Change)
		want  bool
	}{
		"owned since it landed":         {landed, func(*taints.Change) {}, false},
		"lost since it landed":          {lost, func(*taints.Change) {}, true},
		"another record":                {landed, func(c *taints.Change) { c.Annotations = map[string]string{taints.RecordAnnotation: "2"} }, true},
		"other conditions":              {landed, func(c *taints.Change) { c.Conditions = nil }, true},
		"another pair is to be removed": {landed, func(c *taints.Change) { c.Taints = nil }, true},
	} {
		o := newOutbox()
		o.put(before, change)
		<-o.jobs // the writer is at it
		next := change
		next.Owned = []taints.Pair{taint.Pair()}
		c.alter(&next)
		o.put(c.base, next)
		if got := len(o.jobs) == 1; got != c.want {
			t.Errorf("%s: handed out again: %t, want %t", name, got, c.want)
		}
	}
}
