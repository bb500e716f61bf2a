package verdict

import (
	"slices"
	"testing"

	"github.com/taintlet/taintlet/probes"
)

// Full packets that get lost accuse this host only if they do with many peers, and enough
// peers exchange some among themselves meanwhile.
func TestHole(t *testing.T) {
	t.Parallel()
	still := answers(func(_ int, a *Answer) { a.Full = 7 })
	maintained := answers(func(_ int, a *Answer) { a.Maintenance = true })
	mute := func(r *Round) {
		for i := range r.Peers {
			r.Peers[i].Answer = nil
		}
	}
	for _, test := range []struct {
		name    string
		peers   int
		want    string
		changes []change
	}{
		{"with all", 12, "LargePacketsLost", []change{fullLost(12), counting(12, 0)}},
		{"with half", 12, "LargePacketsLost", []change{fullLost(6), counting(12, 0)}},
		{"with fewer", 12, "NetworkHealthy", []change{fullLost(5), counting(12, 0)}},
		{"with one of two", 2, "NetworkHealthy", []change{fullLost(1), counting(2, 0)}},
		{"with two of two", 2, "LargePacketsLost", []change{fullLost(2), counting(2, 0)}},
		{"with one of one", 1, "NetworkHealthy", []change{fullLost(1), counting(1, 0)}},
		{"a third of the peers too", 12, "LargePacketsLost", []change{fullLost(12), counting(8, 4)}},
		{"two fifths of the peers too", 12, "NotProven", []change{fullLost(12), counting(7, 5)}},
		{"all peers too", 12, "NotProven", []change{fullLost(12), counting(0, 12)}},
		{"no peer has exchanged any since", 12, "NotProven", []change{fullLost(12), still}},
		{"three have", 12, "LargePacketsLost", []change{fullLost(12), still, counting(3, 0)}},
		{"two have", 12, "NotProven", []change{fullLost(12), still, counting(2, 0)}},
		{"all peers are of an older release", 12, "NotProven", []change{fullLost(12)}},
		{"peers under maintenance", 12, "NotProven", []change{fullLost(12), counting(12, 0), maintained}},
		{"small ones are not answered either", 12, "NoPeerAnswers", []change{fullLost(12), mute}},
		{"and connections hang", 12, "NotProven", []change{fullLost(12), hanging(12)}},
		{"of half of the peers", 12, "NetworkHealthy", []change{hanging(6)}},
		{"no peer is reached", 12, ReasonPeersUnreachable, []change{fullLost(12), counting(12, 0), reachOnly(0)}},
		{"the API server is silent", 12, "APIServerSilent", []change{fullLost(12), counting(12, 0), class(API, Failed, "")}},
		{"this host is slow", 12, "HostSlow", []change{fullLost(12), counting(12, 0), class(Self, Failed, "")}},
	} {
		s := newScript()
		s.size = test.peers
		s.play(5, counting(test.peers, 0))
		if o := s.play(8, test.changes...); o.Reason != test.want {
			t.Errorf("%s: %s %s: %s", test.name, o.Level, o.Reason, o.Message)
		}
	}
}

// What peers counted before this host began to lose full packets proves nothing: a fault of
// all began with both.
func TestHoleOfAll(t *testing.T) {
	t.Parallel()
	s := newScript()
	s.play(5, counting(12, 0))
	for i := range 60 {
		late := 12 - min(12, i) // a peer more sees it in each round, and none exchanges any
		o := s.play(1, fullLost(12), answers(func(n int, a *Answer) {
			a.Full = 7
			if n >= late {
				a.Full = lostHere
			}
		}))
		if o.Level == probes.Degraded {
			t.Fatalf("after %d rounds: %s", i, o.Message)
		}
	}
}

// One round is bad luck. Three are none, and then one sample is enough.
func TestHoleIsCertain(t *testing.T) {
	t.Parallel()
	s := newScript()
	s.play(5, counting(12, 0))
	for i, want := range []string{"NotYetSure", "NotYetSure", "NotYetSure", "LargePacketsLost"} {
		o := s.play(1, fullLost(12), counting(12, 0))
		if o.Reason != want || o.Certain != (o.Level == probes.Degraded) || o.Due.IsZero() {
			t.Errorf("round %d: %+v", i, o)
		}
	}
	if o := s.play(1, counting(12, 0)); o.Reason != "NotYetSure" || !o.Hysteresis {
		t.Errorf("a round later: %+v", o)
	}
	if o := s.play(4, counting(12, 0)); o.Reason != "NetworkHealthy" {
		t.Errorf("five rounds later: %+v", o)
	}
}

// A host tells its peers that full packets pass, anew with each that does, or that they are
// lost. It tells nothing before it knows.
func TestTellsWhetherFullPacketsPass(t *testing.T) {
	t.Parallel()
	s := newScript()
	untried := func(r *Round) {
		for i := range r.Peers {
			r.Peers[i].Full, r.Peers[i].FullNow = NotTried, false
		}
	}
	one := func(r *Round) { untried(r); r.Peers[3].Full, r.Peers[3].FullNow = Passed, true }
	if s.play(3, untried); s.last.Own.Full != 0 {
		t.Error("tells what it does not know")
	}
	for want := range 3 {
		if s.play(1, one); s.last.Own.Full != want+1 {
			t.Errorf("after %d: %d", want+1, s.last.Own.Full)
		}
	}
	if s.play(5, fullLost(2)); s.last.Own.Full == lostHere {
		t.Error("what is lost with two of twelve is theirs")
	}
	if s.play(1, fullLost(3)); s.last.Own.Full != lostHere {
		t.Error("is a witness although more than a fifth is lost")
	}
	if s.play(1, fullLost(6)); s.last.Own.Full != lostHere {
		t.Error("hides that they get lost")
	}
}

// A restart of the agent must not clear the taint before full packets have passed.
func TestHoleClearsNothingUntried(t *testing.T) {
	t.Parallel()
	s := newScript()
	untried := func(r *Round) {
		for i := range r.Peers {
			r.Peers[i].Full, r.Peers[i].FullNow = NotTried, false
		}
	}
	if o := s.play(9, untried, counting(2, 0)); !slices.Equal(o.NeverHealthy, []string{"LargePacketsLost"}) {
		t.Errorf("%+v", o)
	}
	if o := s.play(1, untried, counting(1, 3)); len(o.NeverHealthy) > 0 {
		t.Errorf("most agents are older: %+v", o)
	}
	if o := s.play(1, counting(12, 0)); len(o.NeverHealthy) > 0 {
		t.Errorf("%+v", o)
	}
}
