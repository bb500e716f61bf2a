package verdict

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// A host that loses one of two families does not reach its peers, whichever it is, and which
// is listed first. One family that was never there is no loss, nor is a peer that lost one.
func TestPeersWithBothFamilies(t *testing.T) {
	t.Parallel()
	v4, v6 := netip.MustParseAddr("198.18.0.1"), netip.MustParseAddr("2001:db9::1")
	for _, test := range []struct {
		name        string
		order       []netip.Addr
		never, lost netip.Addr
		lostBy      int // so many peers
		reached     int
	}{
		{"IPv6 is lost", []netip.Addr{v4, v6}, netip.Addr{}, v6, 12, 0},
		{"IPv6, the first", []netip.Addr{v6, v4}, netip.Addr{}, v6, 12, 0},
		{"IPv4 is lost", []netip.Addr{v4, v6}, netip.Addr{}, v4, 12, 0},
		{"IPv4, the second", []netip.Addr{v6, v4}, netip.Addr{}, v4, 12, 0},
		{"IPv6 was never there", []netip.Addr{v4, v6}, v6, v6, 12, 12},
		{"of one peer", []netip.Addr{v4, v6}, netip.Addr{}, v6, 1, 11},
		{"IPv6 alone", []netip.Addr{v6}, netip.Addr{}, v6, 12, 0},
	} {
		turns := NewRotation(testPeriod)
		var peers []Peer
		for i := range 12 {
			for _, address := range test.order {
				peers = append(peers, Peer{Node: fmt.Sprint(i), Address: netip.AddrPortFrom(address, uint16(i+1))})
			}
		}
		play := func(broken func(Peer) bool) (asked int) {
			now, rest := turns.Choose(peers, false)
			isNews := false
			for len(now) > 0 {
				for _, p := range now {
					result := PeerResult{Node: p.Node, Reached: !broken(p), Answer: &Answer{}}
					isNews = isNews || turns.HasChanged(p, result)
					turns.Take(p, result)
					asked++
				}
				now, rest = rest, nil
				if !isNews {
					break
				}
			}
			return asked
		}
		asked := 0
		for range 20 {
			asked = play(func(p Peer) bool { return p.Address.Addr() == test.never })
		}
		if found := turns.Results(peers); asked > 4 || len(found) != 12 || PeersResult(found, peers).Detail != "reached 12 of 12 peers" {
			t.Errorf("%s, before: %d asked, %d known", test.name, asked, len(found))
		}
		for range 3 {
			play(func(p Peer) bool { return p.Address.Addr() == test.lost && p.Address.Port() <= uint16(test.lostBy) })
		}
		if n := reachOf(turns.Results(peers)); n.reached != test.reached || n.all != 12 {
			t.Errorf("%s: %d of %d reached, want %d", test.name, n.reached, n.all, test.reached)
		}
	}
}

// turnsOf plays rounds with so many peers that are well.
type turnsOf struct {
	turns *Rotation
	peers []Peer
	// says is what each peer answers, by its name; nil: nothing bad.
	says map[string]*Answer
	// gone peers do not answer, lossy ones with retransmits.
	gone, lossy map[string]bool
}

func newTurnsOf(peers int, period time.Duration) *turnsOf {
	s := &turnsOf{turns: NewRotation(period), says: map[string]*Answer{}, gone: map[string]bool{}, lossy: map[string]bool{}}
	for i := range peers {
		s.peers = append(s.peers, Peer{Node: fmt.Sprintf("peer-%d", i)})
	}
	return s
}

// round returns the names of those that were asked.
func (s *turnsOf) round(alert bool) (asked []string) {
	now, rest := s.turns.Choose(s.peers, alert)
	isNews := false
	take := func(peers []Peer) {
		for _, p := range peers {
			result := PeerResult{Node: p.Node, Reached: !s.gone[p.Node], Answer: s.says[p.Node]}
			if s.lossy[p.Node] {
				result.Retransmits = 1
			}
			if result.Answer == nil && result.Reached {
				result.Answer = &Answer{Version: AnswerVersion}
			}
			isNews = isNews || s.turns.HasChanged(p, result)
			s.turns.Take(p, result)
			asked = append(asked, p.Node)
		}
	}
	take(now)
	if isNews {
		take(rest)
	}
	return asked
}

// quiet plays rounds until few peers are asked, and returns how many that took.
func (s *turnsOf) quiet(t *testing.T) (rounds int) {
	t.Helper()
	for rounds = range 100 {
		if len(s.round(false)) < len(s.peers) {
			return rounds
		}
	}
	t.Fatal("all peers are asked in each round")
	return 0
}

func TestQuietRoundsAskFewInTurn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		peers  int
		period time.Duration
		few    int
	}{{12, 5 * time.Second, 3}, {7, 5 * time.Second, 3}, {12, time.Second, 3}, {12, 10 * time.Second, 6}, {12, 12 * time.Second, 8}} {
		s := newTurnsOf(test.peers, test.period)
		if rounds := s.quiet(t); rounds != 1+quietRounds {
			t.Errorf("%+v: all were asked in %d rounds", test, rounds)
		}
		for range 10 {
			seen := map[string]bool{}
			for range (test.peers + test.few - 1) / test.few {
				asked := s.round(false)
				if len(asked) != test.few {
					t.Errorf("%+v: %v were asked", test, asked)
				}
				for _, name := range asked {
					seen[name] = true
				}
			}
			if len(seen) != test.peers {
				t.Errorf("%+v: only %v were asked", test, seen)
			}
		}
	}
	for _, few := range []struct {
		peers  int
		period time.Duration
	}{{3, 5 * time.Second}, {12, 20 * time.Second}, {12, time.Hour}} {
		s := newTurnsOf(few.peers, few.period)
		for range 20 {
			if asked := s.round(false); len(asked) != few.peers {
				t.Errorf("%+v: %v were asked", few, asked)
			}
		}
	}
}

// Whatever is new brings all peers into the same round, and into those after it.
func TestNewsAsksAll(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(s *turnsOf, peer string){
		"gone":           func(s *turnsOf, peer string) { s.gone[peer] = true },
		"retransmits":    func(s *turnsOf, peer string) { s.lossy[peer] = true },
		"no answer":      func(s *turnsOf, peer string) { s.says[peer] = &Answer{Classes: map[Class]bool{DNS: false}} },
		"another level":  func(s *turnsOf, peer string) { s.says[peer] = said(probes.MemoryPressure, probes.Degraded) },
		"a level is new": func(s *turnsOf, peer string) { s.says[peer] = said(probes.MemoryPressure, probes.OK) },
	} {
		s := newTurnsOf(12, testPeriod)
		s.quiet(t)
		happens(s, "peer-9")
		asked := s.round(false)
		for range 3 {
			if len(asked) < 12 {
				asked = s.round(false)
			}
		}
		if len(asked) != 12 || !slices.Contains(asked, "peer-9") {
			t.Errorf("%s: %v were asked in the fourth round", name, asked)
		}
		s.gone, s.lossy = nil, nil
		if rounds := s.quiet(t); rounds < quietRounds-1 {
			t.Errorf("%s: all were asked in %d rounds after it", name, rounds)
		}
	}
}

// A host without power stays in the list for minutes. It is no news for so long, and those that ask it
// ask few peers again, and the API server rarely, until it is back.
func TestPeerThatIsGoneForLongIsNoNews(t *testing.T) {
	t.Parallel()
	s := newTurnsOf(12, testPeriod)
	s.quiet(t)
	s.gone["peer-9"] = true
	for range 60 {
		s.round(false)
	}
	asked := map[string]int{}
	for range 4 {
		for _, name := range s.round(false) {
			asked[name]++
		}
	}
	r := Round{Peers: s.turns.Results(s.peers)}
	if n := reachOf(r.Peers); n.reached != 11 || len(asked) != 12 || asked["peer-9"] != 1 || r.HasFailure() {
		t.Errorf("%d reached, asked %v in 4 rounds, a failure %t", n.reached, asked, r.HasFailure())
	}
	s.gone = nil
	for range 4 {
		s.round(false)
	}
	if all := s.round(false); len(all) != 12 {
		t.Errorf("%v were asked after it was back", all)
	}
	for _, test := range []struct {
		change change
		fails  bool
	}{{reachOnly(10), false}, {reachOnly(9), true}, {hanging(1), true}, {class(DNS, Failed, ""), true}} {
		r := newScript().well()
		if test.change(&r); r.HasFailure() != test.fails {
			t.Errorf("%+v: a failure %t", r.Peers, !test.fails)
		}
	}
}

func said(c probes.Condition, l probes.Level) *Answer {
	return &Answer{Version: AnswerVersion, Levels: map[probes.Condition]probes.Level{c: l}}
}

// Trouble of this host asks all at once, and a peer that is new asks all.
func TestAlertAndStrangersAskAll(t *testing.T) {
	t.Parallel()
	s := newTurnsOf(12, testPeriod)
	s.quiet(t)
	if asked := s.round(true); len(asked) != 12 {
		t.Errorf("%v were asked in trouble", asked)
	}
	if rounds := s.quiet(t); rounds < quietRounds-1 {
		t.Errorf("all were asked in %d rounds after the trouble", rounds)
	}
	s.peers[3].Node = "stranger"
	if asked := s.round(false); len(asked) != 12 {
		t.Errorf("%v were asked with a stranger", asked)
	}
}

// What was found of those that were not asked is carried, and marked. A peer that
// was never reached does not count, and one that went and came back is new.
func TestResultsAreCarried(t *testing.T) {
	t.Parallel()
	s := newTurnsOf(12, testPeriod)
	s.gone["peer-11"] = true
	if s.round(false); len(s.turns.Results(s.peers)) != 11 {
		t.Errorf("%+v count", s.turns.Results(s.peers))
	}
	s.gone["peer-11"] = false
	s.quiet(t)
	carried, all := 0, s.turns.Results(s.peers)
	for i, result := range all {
		if result.Node != s.peers[i].Node || !result.Reached {
			t.Errorf("%d is %+v", i, result)
		}
		if result.Carried {
			carried++
		}
	}
	if len(all) != 12 || carried != 9 {
		t.Errorf("%d of %d are carried", carried, len(all))
	}
	s.gone["peer-11"] = true
	for range 4 {
		s.round(false)
	}
	if all := s.turns.Results(s.peers); len(all) != 12 || all[11].Reached {
		t.Errorf("%+v", all)
	}
	others := s.peers[:11]
	s.turns.Choose(others, false)
	s.round(false)
	if all := s.turns.Results(s.peers); len(all) != 11 {
		t.Errorf("%d count after peer-11 came back and was not reached", len(all))
	}
}

// Peers that were never reached are asked soon again, and then every few minutes,
// also while this host is in trouble. When one of them is reached, all are asked.
func TestClosedPeersAreAskedRarely(t *testing.T) {
	t.Parallel()
	for _, alert := range []bool{false, true} {
		s := newTurnsOf(12, testPeriod)
		for _, peer := range s.peers {
			s.gone[peer.Node] = true
		}
		asked := 0
		rounds := func(n int) {
			for range n {
				asked += len(s.round(alert))
			}
		}
		rounds(12)
		if asked < 36 || len(s.turns.Results(s.peers)) > 0 {
			t.Errorf("in the first minute %d times, reached: %+v", asked, s.turns.Results(s.peers))
		}
		const day = int(24 * time.Hour / testPeriod)
		rounds(day)
		if asked > 12*650 || asked < 12*250 {
			t.Errorf("%d times in a day, want one in 2.5 to 5 min", asked)
		}
		s.gone = map[string]bool{}
		for range s.turns.rounds(closedWait) + 2 {
			if len(s.round(alert)) == 12 {
				break
			}
		}
		if all := s.turns.Results(s.peers); len(all) != 12 {
			t.Errorf("%d count 5 min after the port was opened", len(all))
		}
	}
}

// Peers whose second port alone answers count for 10 min. Then they are as if never
// reached, so that nobody asks their kubelets any more.
func TestBlockedPeersAreClosedAfterSomeTime(t *testing.T) {
	t.Parallel()
	s := newTurnsOf(12, testPeriod)
	s.round(false)
	blocked := 0
	for range int(time.Hour / testPeriod) {
		now, rest := s.turns.Choose(s.peers, false)
		for _, p := range slices.Concat(now, rest) {
			if _, isTried := s.turns.Last(p); isTried {
				blocked++
			}
			s.turns.Take(p, PeerResult{Node: p.Node, ReachedOther: true})
		}
	}
	if most := 12 * int(closedAfter/testPeriod); blocked != most || len(s.turns.Results(s.peers)) > 0 {
		t.Errorf("second ports were asked %d times in an hour, want %d; they count: %+v", blocked, most, s.turns.Results(s.peers))
	}
}
