package network

import (
	"testing"
	"time"
)

// On a network that is well nobody is accused, and nobody is unknown.
func TestSteady(t *testing.T) {
	s := require(t)
	began := time.Now()
	s.start(t, hosts, "")
	s.waitKnown(t, hosts)
	for _, c := range s.records.since(began) {
		if c.tainted {
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
			if state.status == "False" && !state.tainted {
				well++
			}
		}
		return well == count && len(states) == count
	}) {
		t.Fatalf("not all networks are well:\n%s", show(s.records.since(time.Now().Add(-2*time.Minute))))
	}
}
