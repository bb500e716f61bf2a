package network

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/test/bed/fleet"
)

// On a network that is well no agent ever says anything else. (What many say at
// the same time the fleet brake holds back: it would be no taint.)
func TestSteady(t *testing.T) {
	s := require(t)
	agents := s.Start(t, hosts, "")
	s.WaitKnown(t, hosts)
	began := time.Now()
	fleet.WaitSamples(t, agents, 5)
	for _, c := range s.Records.Since(began) {
		if c.Tainted || c.Status != corev1.ConditionFalse {
			t.Errorf("%s", c)
		}
	}
}
