package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/taints"
)

// A Node whose Lease was not renewed within 11 s is gone. What is not known of a
// Lease excuses nobody.
func TestLeases(t *testing.T) {
	inFleet(t, &source{agents: 9}, func(t *testing.T, f *Fleet, s *source) {
		zone := time.FixedZone("", 3600)
		s.leases = map[string]time.Time{}
		for i := 1; i <= 3; i++ {
			s.leases[fmt.Sprint("node-", i)] = time.Now()
		}
		all := []string{"node-1", "node-2", "node-3", "node-4"} // the last one has no Lease
		if err := f.Note(t.Context(), all[:2]); err != nil {
			t.Fatal(err)
		}
		ask := func(when string, want ...verdict.Standing) {
			t.Helper()
			got, err := f.Standings(t.Context(), all)
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %+v, %v, want %+v", when, got, err, want)
			}
		}
		n1, n2, n3, n4 := verdict.Standing{Node: all[0]}, verdict.Standing{Node: all[1]}, verdict.Standing{Node: all[2]}, verdict.Standing{Node: all[3]}
		time.Sleep(renewedWithin - time.Second)
		s.leases[all[0]] = s.leases[all[0]].Add(10 * time.Second)
		s.leases[all[1]] = s.leases[all[1]].In(zone) // the same moment
		n1.LeaseKnown = true
		ask("too soon for the second", n1, n2, n3, n4)
		time.Sleep(time.Second)
		n2.LeaseKnown, n2.Excuse = true, "does not renew its Lease"
		ask("11 s later", n1, n2, n3, n4)
		s.leaseErr = errors.New("forbidden")
		n1.LeaseKnown, n2.LeaseKnown, n2.Excuse = false, false, ""
		ask("no Lease can be read", n1, n2, n3, n4)
		if err := f.Note(t.Context(), all); err == nil {
			t.Error("noted what cannot be read")
		}
		s.leaseErr = nil
		time.Sleep(renewedWithin)
		ask("they were not noted again", n1, n2, n3, n4)
		if err := f.Note(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		time.Sleep(notedFor + time.Second)
		ask("the notes are too old", n1, n2, n3, n4)
	})
}

// A cordoned Node counts when its Lease is renewed: its host is there.
func TestCordonedNodes(t *testing.T) {
	inFleet(t, &source{agents: 9, cordoned: true}, func(t *testing.T, f *Fleet, s *source) {
		s.leases = map[string]time.Time{"node-1": time.Now(), "node-2": time.Now()}
		all := []string{"node-1", "node-2", "node-3"}
		_ = f.Note(t.Context(), all) // the last one has no Lease
		time.Sleep(renewedWithin)
		s.leases["node-1"] = time.Now()
		got, err := f.Standings(t.Context(), all)
		want := []verdict.Standing{
			{Node: "node-1", LeaseKnown: true}, {Node: "node-2", LeaseKnown: true, Excuse: "does not renew its Lease"}, {Node: "node-3", Excuse: "is cordoned"},
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	})
}

// While the list of the agents is read, nobody waits for it.
func TestStandingsDoNotWait(t *testing.T) {
	f := newFleet(&source{agents: 9})
	f.reading.Lock()
	if got, err := f.Standings(t.Context(), []string{"node-1"}); !errors.Is(err, errNotNow) || got != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// The list of the DNS pods is read again while they fail, from 30 s on, in each
// round, ten times at most.
func TestDNSPodsAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{agents: 9}
		f := newFleet(s)
		says := func(well bool) {
			f.SetAnswer(verdict.Answer{Classes: map[verdict.Class]bool{verdict.Pods: well}})
		}
		runFor(t, f, func() {
			for _, test := range []struct {
				name   string
				well   bool
				rounds int
				reads  int
			}{{"well", true, 20, 1}, {"failing for 25 s", false, 6, 1}, {"for 55 s", false, 6, 7}, {"for ever", false, 30, 11}, {"well again", true, 1, 11}, {"failing again", false, 7, 12}} {
				for range test.rounds {
					says(test.well)
					time.Sleep(5 * time.Second)
				}
				s.mu.Lock()
				if s.dnsLists != test.reads {
					t.Errorf("%s: read %d times, want %d", test.name, s.dnsLists, test.reads)
				}
				s.mu.Unlock()
			}
		})
	})
}

// Standings without an answer are asked for again after 5 s, and then less and less
// often: a question is many requests, and in a great incident every host has one.
func TestStandingsWithoutAnAnswerPause(t *testing.T) {
	inFleet(t, &source{agents: 9}, func(t *testing.T, f *Fleet, s *source) {
		s.change(9, errors.New("no answer in time"))
		ask := func(long time.Duration) (asked int) {
			for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(time.Second) {
				before := s.reads()
				if _, err := f.Standings(t.Context(), []string{"node-1"}); err == nil {
					t.Error("an answer without one")
				}
				asked += s.reads() - before
			}
			return asked
		}
		time.Sleep(rereadAfter + time.Second)
		if n := ask(5 * time.Second); n != 1 {
			t.Errorf("asked %d times in the first 5 s", n)
		}
		if n := ask(10 * time.Minute); n < 10 || n > 15 {
			t.Errorf("asked %d times in 10 min", n)
		}
		s.change(9, nil)
		time.Sleep(2 * askLatest)
		if _, err := f.Standings(t.Context(), []string{"node-1"}); err != nil {
			t.Error(err)
		}
		s.change(9, errors.New("no answer in time"))
		time.Sleep(rereadAfter + time.Second)
		if n := ask(20 * time.Second); n < 2 || n > 3 {
			t.Errorf("asked %d times in 20 s after an answer", n)
		}
	})
}

// hanging is a source that gives no answer about Nodes and Leases.
type hanging struct{ *source }

func (hanging) GetNode(ctx context.Context, _ string) (*taints.Node, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hanging) LeaseRenewed(ctx context.Context, _ string) (time.Time, error) {
	<-ctx.Done()
	return time.Time{}, ctx.Err()
}

// What a report needs is asked for 3 s at most, so that the next round is not late.
func TestConsultEndsInTime(t *testing.T) {
	inFleet(t, &source{agents: 9}, func(t *testing.T, f *Fleet, s *source) {
		nodes := []string{"node-1", "node-2"}
		if got := f.Consult(t.Context(), &verdict.Verdict{Note: nodes}); got != nil || len(f.noted) != 0 {
			t.Errorf("nothing is asked, and no Lease is there: %+v, noted %v", got, f.noted)
		}
		s.leases = map[string]time.Time{"node-2": time.Now()}
		if got := f.Consult(t.Context(), &verdict.Verdict{Note: nodes, Ask: nodes}); len(got) != 2 || len(f.noted) != 1 {
			t.Errorf("%+v, noted %v", got, f.noted)
		}
		f.options.Source = hanging{s}
		begin := time.Now()
		if got := f.Consult(t.Context(), &verdict.Verdict{Note: nodes, Ask: nodes}); got != nil || time.Since(begin) != 3*time.Second {
			t.Errorf("%+v without an answer, after %s", got, time.Since(begin))
		}
		f.options.Source = s
	})
}
