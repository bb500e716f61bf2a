package fleet

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/taints"
)

// The Leases of Nodes that may count are read: also of those that are cordoned or under maintenance. One
// that cannot be read is left out.
func TestLeases(t *testing.T) {
	for _, cordoned := range []bool{false, true} {
		inFleet(t, &source{agents: 9, cordoned: cordoned}, func(t *testing.T, f *Fleet, s *source) {
			renewed, excuse := time.Now(), map[bool]string{true: verdict.Cordoned}[cordoned]
			s.leases = map[string]time.Time{"node-1": renewed}
			all := []string{"node-1", "node-2"} // the last one has no Lease
			for range 2 {
				if got, want := f.leases(t.Context(), all), []verdict.Standing{{Node: all[0], Renewed: renewed}, {Node: all[1]}}; !slices.Equal(got, want) {
					t.Errorf("%+v, want %+v", got, want)
				}
				got, err := f.Standings(t.Context(), all, all)
				if want := []verdict.Standing{{Node: all[0], Excuse: excuse, Renewed: renewed}, {Node: all[1], Excuse: excuse}}; err != nil || !slices.Equal(got, want) {
					t.Errorf("%+v, %v, want %+v", got, err, want)
				}
				got, err = f.Standings(t.Context(), all, nil)
				if want := []verdict.Standing{{Node: all[0], Excuse: excuse}, {Node: all[1], Excuse: excuse}}; err != nil || !slices.Equal(got, want) {
					t.Errorf("no Lease was noted: %+v, %v, want %+v", got, err, want)
				}
				s.leases, s.leaseErr, renewed = nil, errors.New("forbidden"), time.Time{}
			}
		})
	}
}

// While the list of the agents is read, nobody waits for it.
func TestStandingsDoNotWait(t *testing.T) {
	f := newFleet(&source{agents: 9})
	f.reading.Lock()
	if got, err := f.Standings(t.Context(), []string{"node-1"}, nil); !errors.Is(err, errNotNow) || got != nil {
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
			f.Consult(t.Context(), &verdict.Verdict{Own: verdict.Answer{Classes: map[verdict.Class]bool{verdict.Pods: well}}})
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
				if _, err := f.Standings(t.Context(), []string{"node-1"}, nil); err == nil {
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
		if _, err := f.Standings(t.Context(), []string{"node-1"}, nil); err != nil {
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

// What a report needs is asked for 2 s at most, so that the next round is not late.
func TestConsultEndsInTime(t *testing.T) {
	inFleet(t, &source{agents: 9}, func(t *testing.T, f *Fleet, s *source) {
		nodes := []string{"node-1", "node-2"}
		if got := f.Consult(t.Context(), &verdict.Verdict{}); got != nil {
			t.Errorf("nothing is asked: %+v", got)
		}
		s.leases = map[string]time.Time{"node-2": time.Now()}
		for _, asked := range []*verdict.Verdict{{Leases: nodes}, {Ask: nodes, Leases: nodes}} {
			if got := f.Consult(t.Context(), asked); len(got) != 2 || !got[0].Renewed.IsZero() || !got[1].Renewed.Equal(s.leases[nodes[1]]) {
				t.Errorf("%+v", got)
			}
		}
		f.options.Source = hanging{s}
		for ask, most := range map[*verdict.Verdict]time.Duration{{Leases: nodes}: time.Second, {Ask: nodes, Leases: nodes}: 2 * time.Second} {
			begin := time.Now()
			for _, standing := range f.Consult(t.Context(), ask) {
				if !standing.Renewed.IsZero() || ask.Ask != nil {
					t.Errorf("%+v without an answer", standing)
				}
			}
			if time.Since(begin) != most {
				t.Errorf("%s without an answer", time.Since(begin))
			}
		}
		f.options.Source = s
	})
}
