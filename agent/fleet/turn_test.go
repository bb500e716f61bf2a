package fleet

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

// hearFor has the peers answer every so often, but those of no Node that is silent.
func hearFor(t *testing.T, f *Fleet, length, every time.Duration, silent ...string) {
	for range length / every {
		answers := map[string]verdict.Answer{}
		for _, peer := range f.Surroundings().Peers {
			if !slices.Contains(silent, peer.Node) {
				answers[peer.Node] = verdict.Answer{Version: verdict.AnswerVersion}
			}
		}
		f.Consult(t.Context(), &verdict.Verdict{Round: *roundOf(answers)})
		time.Sleep(every)
	}
}

// In a fleet of few one Node that is gone is more than a fifth of the peers, and so are
// a few Nodes that are replaced in a large one. They are no peers any more within half
// a minute after the control plane has found that they are gone.
func TestMissingPeersLeaveTheList(t *testing.T) {
	for _, test := range []struct{ agents, slices, gone int }{{2, 1, 1}, {3, 1, 1}, {4, 1, 1}, {5, 1, 2}, {20, 1, 8}, {20, 20, 8}} {
		inFleet(t, &source{agents: test.agents, more: test.slices - 1}, func(t *testing.T, f *Fleet, s *source) {
			hearFor(t, f, time.Hour, 5*time.Second)
			var silent []string
			for i := range test.gone {
				silent = append(silent, fmt.Sprint("node-", test.agents-1-i))
			}
			before := s.reads()
			hearFor(t, f, 55*time.Second, 5*time.Second, silent...)
			s.change(test.agents-test.gone, nil)
			hearFor(t, f, time.Duration(30+test.slices)*time.Second, 5*time.Second, silent...)
			for _, peer := range f.Surroundings().Peers {
				if slices.Contains(silent, peer.Node) {
					t.Errorf("%+v: %s is a peer after a minute and a half", test, peer.Node)
				}
			}
			if got := s.reads() - before; got > 5 {
				t.Errorf("%+v: read %d times", test, got)
			}
		})
	}
}

// Peers that stay in the list and never answer, since a firewall closes the port, do
// not make it read for ever: at most about twice as often as in its turn.
func TestListOfClosedPeersIsReadWithinABound(t *testing.T) {
	inFleet(t, &source{agents: 5}, func(t *testing.T, f *Fleet, s *source) {
		hearFor(t, f, time.Hour, 5*time.Second, "node-1", "node-2", "node-3", "node-4")
		if got := s.reads(); got > 30 {
			t.Errorf("read %d times in the first hour", got)
		}
		before := s.reads()
		hearFor(t, f, 10*time.Hour, 5*time.Second, "node-1", "node-2", "node-3", "node-4")
		if got := s.reads() - before; got > 140 {
			t.Errorf("read %d times in 10 hours after it", got)
		}
	})
}

// An agent receives the metadata of some 60 slices an hour, up to 6,000 Nodes. The DNS
// pods, whose list does not grow with the fleet, are read as often as before.
func TestManySlicesAreReadLessOften(t *testing.T) {
	for count, want := range map[int]float64{1: 6, 10: 6, 14: 6, 15: 3, 20: 3, 50: 1.2, 60: 1, 150: 1} {
		inFleet(t, &source{agents: 20, more: count - 1}, func(t *testing.T, f *Fleet, s *source) {
			const hours = 50
			hearFor(t, f, hours*time.Hour, 20*time.Second)
			if got := float64(s.reads()) / hours; got < 0.9*want || got > 1.1*want {
				t.Errorf("%d slices: read %.2f times an hour, want %.1f", count, got, want)
			}
			if got := float64(s.dnsLists) / hours; got < 5.4 || got > 6.6 {
				t.Errorf("%d slices: the DNS pods are read %.2f times an hour", count, got)
			}
		})
	}
}

// A list that is old may have peers that are gone. It is read with the next refresh
// when one does not answer.
func TestListIsReadAgainWhenAPeerIsSilent(t *testing.T) {
	inFleet(t, &source{agents: 20, more: 149}, func(t *testing.T, f *Fleet, s *source) {
		hearFor(t, f, 20*time.Minute, 20*time.Second)
		if got := s.reads(); got != 1 {
			t.Errorf("read %d times in 20 min", got)
		}
		hearFor(t, f, 15*time.Minute, 20*time.Second, f.Surroundings().Peers[0].Node)
		if got := s.reads(); got < 2 || got > 3 {
			t.Errorf("read %d times after a peer was silent for 15 min", got)
		}
	})
}

// A large fleet that has just been installed has slices, and few agents in them that
// are ready.
func TestManySlicesOfFewAgentsAreReadSoonAgain(t *testing.T) {
	inFleet(t, &source{agents: 3, more: 149}, func(t *testing.T, f *Fleet, s *source) {
		hearFor(t, f, 31*time.Minute, 20*time.Second)
		if got := s.reads(); got < 6 || got > 8 {
			t.Errorf("read %d times in 31 min", got)
		}
	})
}
