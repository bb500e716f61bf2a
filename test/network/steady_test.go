package network

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// On a network that is well no agent ever says anything else. (What many say at
// the same time the fleet brake holds back: it would be no taint.)
func TestSteady(t *testing.T) {
	s := require(t)
	agents := s.start(t, hosts, "")
	s.waitKnown(t, hosts)
	began := time.Now()
	waitSamples(t, agents, 5)
	for _, c := range s.records.since(began) {
		if c.tainted || c.status != corev1.ConditionFalse {
			t.Errorf("%s", c)
		}
	}
}

// waitKnown waits until all agents say that their network is well.
func (s *scene) waitKnown(t *testing.T, count int) {
	t.Helper()
	if !s.records.wait(time.Minute, func(states map[string]state) bool {
		well := 0
		for _, state := range states {
			if state.status == corev1.ConditionFalse && !state.tainted {
				well++
			}
		}
		return well == count && len(states) == count
	}) {
		t.Fatalf("not all networks are well:\n%s", show(s.records.since(time.Now().Add(-2*time.Minute))))
	}
}
