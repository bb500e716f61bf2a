package security

import (
	"slices"
	"testing"
	"time"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// All agents are one user to the API server, so what the token of one is used for may
// keep the taint of another waiting. Any account without rights can keep the API
// server busy too. Beside a stolen token the taint comes within 3 seconds, or at most
// half as late again as beside that, by the median of three floods. Of patches that no
// policy sees it is measured only that the taint comes.
// It is not in the table of attacks: what it measures is the machine's API server, and not
// the agent.
func TestStolenTokenOnManyConnections(t *testing.T) {
	cluster.SkipUnlessRequired(t)
	if !isLong() {
		t.Skip("it keeps all cores busy for minutes: only with " + longEnv)
	}
	const seenByPolicies = 20_000 // annotations; 200,000 are refused before
	s := newScene(t)
	s.calm(t)
	stolen := bed.AgentOf(t, s.cluster, s.other)
	anybody := s.cluster.WithToken(bed.TokenOf(t, s.cluster, "default", "default", nil))
	for _, row := range []struct{ connections, annotations int }{{16, seenByPolicies}, {64, seenByPolicies}, {200, seenByPolicies}, {16, 200_000}} {
		var others, delays [3]time.Duration // one flood each: a single taint may wait for a borrowed seat or not
		for i := range delays {
			others[i] = s.beside(t, row.connections, cluster.LargeReview(anybody, row.annotations))
			delays[i] = s.beside(t, row.connections, cluster.LargePatch(stolen, s.other, row.annotations))
		}
		slices.Sort(others[:])
		slices.Sort(delays[:])
		t.Logf("%d connections, %d annotations: the taint came after %s beside a stolen token, and after %s beside an account without rights",
			row.connections, row.annotations, delays, others)
		delay, other := delays[1], others[1]
		if row.annotations == seenByPolicies && delay > 3*time.Second && delay > other*3/2 {
			t.Errorf("the taint came after %s beside a stolen token, and after %s beside an account without rights", delay, other)
		}
	}
}

// beside is how soon the attacked agent sets its taint while the API server is flooded.
func (s *scene) beside(t *testing.T, connections int, r cluster.LargeRequest) (delay time.Duration) {
	t.Helper()
	end, err := s.cluster.Flood(t.Context(), connections, r)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(cluster.Underway) // not for an event: a flood that goes on for a while is measured
	begin := time.Now()
	s.host.Memory(2)
	at, ok := s.nodes.until(2*time.Minute, isTainted)
	if delay = at.Sub(begin); !ok {
		t.Errorf("no taint after %s", delay)
	}
	if _, err := end(); err != nil {
		t.Error(err)
	}
	s.recover()
	return delay
}
