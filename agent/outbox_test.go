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
	o.put(&corev1.Node{}, taints.Change{})
	announced := (<-o.jobs).announce
	if len(announced) != 2 || announced[0].at != time.Unix(99, 0) || announced[1].at != time.Unix(99, 0) {
		t.Errorf("%d announcements: %v", len(announced), announced)
	}
}
