package cleanup

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Agents count while they can write: not after their end, nor when the API server no
// longer accepts the token of a pod that is being deleted.
func TestAgentsThatCanWrite(t *testing.T) {
	now := time.Now()
	pod := func(name, node string, phase corev1.PodPhase, deleted time.Duration) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
		if deleted != 0 {
			p.DeletionTimestamp = &metav1.Time{Time: now.Add(-deleted)}
		}
		return p
	}
	pods := []corev1.Pod{
		pod("a", "n1", corev1.PodRunning, 0), pod("b", "n4", corev1.PodPending, 0), pod("c", "", corev1.PodPending, 0),
		pod("d", "n1", corev1.PodFailed, 0), pod("e", "n2", corev1.PodRunning, -5*time.Second), pod("f", "n1", corev1.PodRunning, time.Minute),
		pod("g", "n3", corev1.PodRunning, 2*time.Minute),
	}
	for _, test := range []struct {
		nodes, running []string
		goesOn         bool
	}{
		{nil, []string{"a on n1", "b on n4", "e on n2", "f on n1"}, true},
		{[]string{"n1"}, []string{"a on n1", "f on n1"}, true},
		{[]string{"n2"}, []string{"e on n2"}, false},
		{[]string{"n3"}, nil, false},
	} {
		running, goesOn := (&options{names: test.nodes}).running(pods, now)
		if !slices.Equal(running, test.running) || goesOn != test.goesOn {
			t.Errorf("of %v: %v run, one goes on: %t; want %+v", test.nodes, running, goesOn, test)
		}
	}
}
