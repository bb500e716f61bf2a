package verdict

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// untilAsked plays until others are asked about.
func (s *script) untilAsked(t *testing.T, changes ...change) time.Duration {
	t.Helper()
	for begin := s.now; s.now.Sub(begin) < 5*time.Minute; {
		if s.play(1, changes...); s.last.Ask != nil {
			return s.now.Sub(begin)
		}
	}
	t.Fatal("nobody is asked about")
	return 0
}

func TestSuspicionWaits(t *testing.T) {
	t.Parallel()
	moments := map[time.Duration]bool{}
	for seed := range uint64(50) {
		s := newScript()
		s.evaluator = NewEvaluator(testPeriod, seed)
		s.play(3)
		took := s.untilAsked(t, reachOnly(0))
		if least, most := 60*time.Second, 70*time.Second; took < least || took > most {
			t.Errorf("seed %d: asked after %s, want %s to %s", seed, took, least, most)
		}
		moments[took] = true
		if len(s.last.Ask) != askSome {
			t.Errorf("seed %d: asked about %v", seed, s.last.Ask)
		}
	}
	if len(moments) < 2 {
		t.Errorf("all hosts ask after %v: no jitter", moments)
	}
}

func TestAsksOnlyAboutThoseNotReached(t *testing.T) {
	t.Parallel()
	s := newScript()
	s.size = 5
	s.play(1)
	s.untilAsked(t, reachOnly(1))
	asked := slices.Sorted(slices.Values(s.last.Ask))
	if !slices.Equal(asked, []string{"peer-1", "peer-2", "peer-3", "peer-4"}) {
		t.Errorf("asked about %v", asked)
	}
}

// The question stays until it is answered, and is put anew, to others, when no
// answer comes.
func TestQuestionStays(t *testing.T) {
	t.Parallel()
	s := played(1)
	s.untilAsked(t, reachOnly(0))
	first := s.last.Ask
	s.play(5, reachOnly(0))
	if !slices.Equal(s.last.Ask, first) {
		t.Errorf("asked about %v, then %v", first, s.last.Ask)
	}
	// The Leases of those others are noted first.
	if s.play(1, reachOnly(0)); s.last.Ask != nil || len(s.last.noted()) != askSome {
		t.Errorf("after %s without an answer: %+v", askPatience, s.last)
	}
	s.untilAsked(t, reachOnly(0))
	if slices.Equal(s.last.Ask, first) {
		t.Errorf("after %s without an answer: %v", askPatience, s.last.Ask)
	}
}

// Every question is about Nodes whose Leases were noted some time before, so that a
// host without power does not count though it may be Ready for minutes.
func TestLeasesAreNotedBeforeEachQuestion(t *testing.T) {
	t.Parallel()
	for _, known := range []int{0, 12} { // second ports: the wait is long, or short and long
		s := played(5)
		var noted []string
		var notedAt time.Duration
		questions, begin := 0, s.now
		for s.now.Sub(begin) < 5*time.Minute {
			s.play(1, cutOff(0, known), func(*Round) {
				s.reply = func(ask []string) (all []Standing) {
					questions++
					isShort := known > 0 && s.now.Sub(begin) < 30*time.Second
					if before := s.now.Sub(begin) - notedAt; before < 11*time.Second && !isShort || before > 30*time.Second {
						t.Errorf("asked %s after the Leases were noted", before)
					}
					if len(ask) != 5 && !isShort || isShort && len(ask) != 12 {
						t.Errorf("asked about %v", ask)
					}
					for _, node := range ask {
						if slices.Contains(noted, node) {
							all = append(all, Standing{Node: node, Renewed: before})
						} else if !isShort {
							t.Errorf("%s was not noted: %v", node, noted)
						} else {
							all = append(all, Standing{Node: node})
						}
					}
					return all
				}
			})
			if o := s.last.Observation; o.Level == probes.Degraded {
				t.Fatalf("%d second ports: %+v", known, o)
			}
			if s.last.noted() != nil {
				noted, notedAt = s.last.noted(), s.now.Sub(begin)
			}
		}
		if questions < 4 {
			t.Errorf("%d second ports: %d questions", known, questions)
		}
	}
}

// A Node whose Lease could not be noted or read does not count where others' could.
func TestUnknownLease(t *testing.T) {
	t.Parallel()
	for known, want := range map[int]string{0: "CutOff", 1: ReasonManySuspect, 2: "CutOff"} {
		s := played(1)
		s.untilAsked(t, reachOnly(0))
		o := s.play(1, reachOnly(0), func(*Round) {
			s.reply = func(ask []string) (all []Standing) {
				for i, node := range ask {
					all = append(all, Standing{Node: node})
					if i < known {
						all[i].Renewed = since
					}
				}
				return all
			}
		})
		if o.Reason != want {
			t.Errorf("%d Leases are known: %s: %s", known, o.Reason, o.Message)
		}
	}
}

// A Lease is compared with itself. A Node that did not renew it within 12 s is gone, and a cordoned one that
// did is there. What is not known of it excuses nobody.
func TestLeases(t *testing.T) {
	t.Parallel()
	noted := time.Unix(1000, 0)
	zone := time.FixedZone("", 3600)
	for _, test := range []struct {
		name    string
		after   time.Duration
		answer  Standing
		excused string
		there   int
	}{
		{"renewed", time.Second, Standing{Renewed: since}, "", 1},
		{"too soon to tell", leaseTells - time.Second, Standing{Renewed: before.In(zone)}, "", 0},
		{"not renewed", leaseTells, Standing{Renewed: before.In(zone)}, "a does not renew its Lease", 0},
		{"not read", leaseTells, Standing{}, "", 0},
		{"not read, cordoned", leaseTells, Standing{Excuse: Cordoned}, "a is cordoned", 0},
		{"cordoned, renewed", time.Second, Standing{Excuse: Cordoned, Renewed: since}, "", 1},
		{"cordoned, not renewed", leaseTells, Standing{Excuse: Cordoned, Renewed: before}, "a does not renew its Lease", 0},
		{"maintained, renewed", time.Second, Standing{Excuse: Maintained, Renewed: since}, "a is under maintenance", 0},
		{"maintained, not renewed", leaseTells, Standing{Excuse: Maintained, Renewed: before}, "a is under maintenance", 0},
	} {
		s := suspicion{excused: map[string]bool{}, noted: []string{"a"}, ask: []string{"a"}, notedAt: noted, leases: map[string]time.Time{"a": before}}
		test.answer.Node = "a"
		c := s.countStandings(&Round{At: noted.Add(test.after), Standings: []Standing{test.answer}})
		if got := strings.Join(c.excused, ""); got != test.excused || s.excused["a"] != (got != "") || c.there != test.there {
			t.Errorf("%s: %+v", test.name, c)
		}
	}
}

// Those that do not count are named, and others are asked about soon, where there are
// any: a host that is cut off is found although most of its peers are cordoned.
func TestExcusedPeers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		s := newScript()
		s.evaluator = NewEvaluator(testPeriod, seed)
		s.size = 7
		s.play(1)
		cordoned := func(*Round) {
			s.reply = func(ask []string) (all []Standing) {
				for _, node := range ask {
					standing := Standing{Node: node, Renewed: since}
					if node >= "peer-2" { // 5 of 7
						standing = Standing{Node: node, Excuse: Cordoned}
					}
					all = append(all, standing)
				}
				return all
			}
		}
		took, ok := s.until("CutOff", reachOnly(0), cordoned)
		if !ok || took > 2*time.Minute {
			t.Errorf("seed %d: after %s: %+v", seed, took, s.last.Observation)
		}
		if ok && !strings.Contains(s.last.Observation.Message, " other hosts are healthy; not counted: peer-") {
			t.Error(s.last.Observation.Message)
		}
	}
	s := newScript()
	s.size = 2
	s.play(1)
	s.untilAsked(t, reachOnly(0))
	if o := s.play(1, reachOnly(0), s.standing(0, 2)); !strings.HasSuffix(o.Message,
		"; 0 of 0 other hosts are healthy; not counted: peer-0 is not ready, peer-1 is not ready; fewer than 2 count, so no taint follows") &&
		!strings.HasSuffix(o.Message, "; 0 of 0 other hosts are healthy; not counted: peer-1 is not ready, peer-0 is not ready; fewer than 2 count, so no taint follows") {
		t.Error(o.Message)
	}
	c := census{count: 1, excused: []string{"a is x", "b is x", "c is x", "d is x", "e is x"}}
	if got := c.String(); got != "0 of 1 other hosts are healthy; not counted: a is x, b is x, c is x and 2 more" {
		t.Error(got)
	}
}

func TestStandings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name              string
		peers, reached    int
		suspects, excused int
		reason            string
		found             string
	}{
		{"all others well", 12, 0, 0, 0, "CutOff", "reached 0 of 12 peers; 5 of 5 other hosts are healthy; API server answers"},
		{"some suspect", 12, 1, 2, 0, "CutOff", "reached 1 of 12 peers; 3 of 5 other hosts are healthy; API server answers"},
		{"most suspect", 12, 0, 3, 0, ReasonManySuspect, ""},
		{"half suspect", 4, 0, 2, 0, ReasonManySuspect, ""},
		{"half of those that count suspect", 12, 0, 2, 1, ReasonManySuspect, ""},
		{"too few count", 12, 0, 0, 4, ReasonManySuspect, ""},
		{"two count", 12, 0, 0, 3, "CutOff", ""},
		// Of 10 that are not reached, 4 count: 2 of 6 are reached.
		{"enough are reached of those that count", 12, 2, 0, 3, ReasonManySuspect, ""},
		{"three nodes, one cut off", 2, 0, 0, 0, "CutOff", ""},
		{"three nodes, one of the others too", 2, 0, 1, 0, ReasonManySuspect, ""},
		{"three nodes, one of the others is drained", 2, 0, 0, 1, ReasonManySuspect, ""},
	} {
		s := newScript()
		s.size = test.peers
		s.play(1)
		s.untilAsked(t, reachOnly(test.reached))
		o := s.play(1, reachOnly(test.reached), s.standing(test.suspects, test.excused))
		if o.Reason != test.reason || test.found != "" && o.Message != test.found {
			t.Errorf("%s: %s: %s", test.name, o.Reason, o.Message)
		}
	}
}

// One peer is too few to compare with.
func TestOnePeer(t *testing.T) {
	t.Parallel()
	s := newScript()
	s.size = 1
	s.play(1)
	if o := s.play(10, reachOnly(0)); o.Reason != "NetworkHealthy" || o.Severity != 0 {
		t.Errorf("one peer, and it is not reached: %+v", o)
	}
}

// An answer to another question is none.
func TestStandingsOfOthersDoNotCount(t *testing.T) {
	t.Parallel()
	s := played(1)
	s.untilAsked(t, reachOnly(0))
	o := s.play(1, reachOnly(0), func(r *Round) {
		r.Standings = []Standing{{Node: "a"}, {Node: "b"}, {Node: "c"}, {Node: "d"}, {Node: "e"}}
	})
	if o.Level == probes.Degraded {
		t.Errorf("accused by Nodes that were not asked about: %+v", o)
	}
}

func TestAskedAgain(t *testing.T) {
	t.Parallel()
	s := played(1)
	s.untilAsked(t, reachOnly(0))
	s.play(1, reachOnly(0), s.standing(5, 0))
	took := s.untilAsked(t, reachOnly(0))
	if took < askAgain || took > askAgain+suspicionJitter+testPeriod {
		t.Errorf("asked again after %s", took)
	}
	if o := s.play(1, reachOnly(0), s.standing(0, 0)); o.Reason != "CutOff" {
		t.Errorf("others are well now: %+v", o)
	}
	// And again while accused: a fault may grow to all.
	s.untilAsked(t, reachOnly(0))
	if o := s.play(1, reachOnly(0), s.standing(5, 0)); o.Level != probes.Unknown || o.Reason != ReasonManySuspect {
		t.Errorf("others suspect themselves now: %+v", o)
	}
}

// A host that suspected itself when its agent was restarted goes on to. Otherwise no peer was
// ever reached, which is no failure.
func TestSuspicionSurvivesARestart(t *testing.T) {
	t.Parallel()
	for _, suspected := range []bool{true, false} {
		turns, peers, evaluator := NewRotation(testPeriod), twelve(), NewEvaluator(testPeriod, 1)
		turns.Suspected = suspected
		var v Verdict
		rounds := 0
		for now := time.Unix(1000, 0); rounds < 100 && v.Observation.Reason != "CutOff"; rounds++ {
			now = now.Add(testPeriod)
			asked, rest := turns.Choose(peers, true)
			for _, p := range append(asked, rest...) {
				turns.Take(p, PeerResult{Node: p.Node})
			}
			r := Round{At: now, Peers: turns.Results(peers), Results: map[Class]Result{API: {Outcome: Well}}}
			r.Results[Peers] = PeersResult(r.Peers, peers)
			v = evaluator.Next(r)
			for _, node := range v.Ask {
				r.Standings = append(r.Standings, Standing{Node: node, Renewed: since})
			}
			if len(v.Ask) > 0 {
				v = evaluator.Answered(r)
			}
		}
		for range int(neverHolds / testPeriod) { // its port may have been closed for good meanwhile
			turns.Choose(peers, true)
			for _, p := range peers {
				turns.Take(p, PeerResult{Node: p.Node})
			}
		}
		if known := turns.Results(peers); len(known) > 0 {
			t.Errorf("suspected %t: %d peers count after an hour", suspected, len(known))
		}
		if took := time.Duration(rounds) * testPeriod; (v.Observation.Reason == "CutOff") != suspected || suspected && took > 80*time.Second {
			t.Errorf("suspected %t: %s after %s", suspected, v.Observation.Reason, took)
		}
	}
}

// While the API server is silent nobody can say that he suspects himself. When it
// is back all need their time.
func TestSilentAPIServerBeginsTheWaitAnew(t *testing.T) {
	t.Parallel()
	silent := class(API, Failed, "")
	s := played(3)
	s.play(40, reachOnly(0), silent)
	if took := s.untilAsked(t, reachOnly(0)); took < suspicionWait(testPeriod) {
		t.Errorf("asked %s after the API server was back", took)
	}
	s.play(1, reachOnly(0), s.standing(0, 0))
	s.play(5, reachOnly(0), silent)
	if o := s.play(1, reachOnly(0)); o.Level == probes.Degraded {
		t.Errorf("still accused after the API server was silent: %+v", o)
	}
}

// A fleet that is cut in halves: a host that by bad luck knows mostly peers of the
// other half is told so by those of its own.
func TestHalves(t *testing.T) {
	t.Parallel()
	half := answers(func(_ int, a *Answer) { a.Reach = 50 })
	s := played(1)
	if took, ok := s.until("CutOff", reachOnly(2), half, s.standing(0, 0)); ok {
		t.Errorf("accused after %s", took)
	}
	if o := s.last.Observation; o.Reason != ReasonManySuspect {
		t.Errorf("%+v", o)
	}
	// In a small part that is cut off from the rest, they reach as few.
	few := answers(func(_ int, a *Answer) { a.Reach = 16 })
	if _, ok := s.until("CutOff", reachOnly(2), few, s.standing(0, 0)); !ok {
		t.Errorf("not accused: %+v", s.last.Observation)
	}
}

// One hostile peer that a cut-off host still reaches, and that says that it reaches half
// of its own, keeps this host from being accused, though another one is honest:
// test/security/claims.md says so.
func TestOneReachedPeerThatLies(t *testing.T) {
	t.Parallel()
	for said, accused := range map[int]bool{50: false, 8: true} {
		liar := answers(func(i int, a *Answer) {
			if i == 0 {
				a.Reach = said
			}
		})
		for _, reached := range []int{1, 2} { // of 12, more are no suspicion
			s := played(1)
			if _, ok := s.until("CutOff", reachOnly(reached), liar, s.standing(0, 0)); ok != accused {
				t.Errorf("%d reached, one says that it reaches %d %%: %+v", reached, said, s.last.Observation)
			}
		}
	}
}

// An accusation ends at an easier threshold than it began: between the two the
// host is Unknown, which clears nothing.
func TestAccusationEnds(t *testing.T) {
	t.Parallel()
	s := played(1)
	if _, ok := s.until("CutOff", reachOnly(0), s.standing(0, 0)); !ok {
		t.Fatalf("not accused: %+v", s.last.Observation)
	}
	if o := s.play(10, reachOnly(0)); o.Reason != "CutOff" {
		t.Errorf("while it lasts: %+v", o)
	}
	if o := s.play(1, reachOnly(9)); o.Level != probes.Unknown {
		t.Errorf("in the first better round: %+v", o)
	}
	if o := s.play(20, reachOnly(9)); o.Reason != "SomePeersUnreachable" {
		t.Errorf("three quarters reached: %+v", o)
	}
	if s.last.Ask != nil {
		t.Errorf("asked about %v", s.last.Ask)
	}
	if o := s.play(3); o.Level != probes.OK || !o.Hysteresis {
		t.Errorf("in the third good round: %+v", o)
	}
	if o := s.play(2); o.Level != probes.OK || o.Hysteresis {
		t.Errorf("in the fifth good round: %+v", o)
	}
}

// One round in which nobody is reached is bad luck.
func TestOneBadRound(t *testing.T) {
	t.Parallel()
	s := played(5)
	if o := s.play(1, reachOnly(0)); o.Reason != ReasonPeersUnreachable || o.Level != probes.Unknown || o.Severity >= 50 {
		t.Errorf("in a bad round: %+v", o)
	}
	if o := s.play(1); o.Reason != "NotYetSure" || o.Level != probes.OK || !o.Hysteresis || s.last.Ask != nil {
		t.Errorf("after a bad round: %+v", o)
	}
	if o := s.play(5); o.Reason != "NetworkHealthy" {
		t.Errorf("after five good rounds: %+v", o)
	}
}

func TestBlockedPortIsNoEvidence(t *testing.T) {
	t.Parallel()
	s := played(1)
	if o := s.play(60, secondPortOnly(0), s.standing(0, 0)); o.Reason != ReasonPortBlocked || o.Level != probes.OK || !o.Warns {
		t.Errorf("%+v", o)
	}
	if o := s.play(5, secondPortOnly(11)); o.Reason != "NetworkHealthy" {
		t.Errorf("one port of twelve: %+v", o)
	}
}

// Where the second ports tell that not only taintlet's is blocked, the wait is
// short: some Leases are noted at its begin, and all that are not reached are asked
// about at its end.
func TestShortWait(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		s := newScript()
		s.evaluator = NewEvaluator(testPeriod, seed)
		s.play(3)
		if o := s.play(1, cutOff(0, 12)); o.Reason != ReasonPeersUnreachable || len(s.last.noted()) != askSome || !o.Due.Equal(s.now.Add(10*time.Second)) || s.last.Ask != nil {
			t.Fatalf("suspect: %+v", s.last)
		}
		took := s.untilAsked(t, cutOff(0, 12))
		if took != 10*time.Second || len(s.last.Ask) != 12 || s.last.noted() != nil || len(s.last.Leases) != askSome {
			t.Errorf("asked after %s about %v, noted %v", took, s.last.Ask, s.last.noted())
		}
		if o := s.play(1, cutOff(0, 12), s.standing(0, 0)); o.Reason != "CutOff" || !o.Certain || !o.Due.IsZero() {
			t.Errorf("%+v", o)
		}
	}
}

// A host that is cut off loses its peers at once. One that loses them one after another may
// be the last one whom a fault of all has left its reach, so that the others do not suspect
// themselves yet.
func TestShortWaitNeedsASuddenLoss(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		before  []int // how many peers are reached, in the rounds before
		isShort bool
	}{
		{"at once", nil, true},
		{"in the middle of a round", []int{6}, true},
		{"in two rounds more", []int{9, 4}, false},
		{"one after another", []int{11, 10, 9, 8, 7, 6, 5, 4, 3}, false},
		{"some of them long before", []int{6, 12, 12, 12, 12}, true},
	} {
		s := played(5)
		for _, reached := range test.before {
			s.play(1, cutOff(reached, 12-reached))
		}
		s.play(1, cutOff(0, 12))
		if isShort := s.last.noted() != nil; isShort != test.isShort {
			t.Errorf("%s: %t", test.name, isShort)
		}
	}
}

func TestShortWaitDependsOnThePeriod(t *testing.T) {
	t.Parallel()
	for period, want := range map[time.Duration]time.Duration{time.Second: 10 * time.Second, 5 * time.Second: 10 * time.Second, 20 * time.Second: 25 * time.Second} {
		if got := shortWait(period, manyWitnesses); got != want {
			t.Errorf("period %s: %s, want %s", period, got, want)
		}
		if got := shortWait(period, manyWitnesses-1); got != want+8*time.Second {
			t.Errorf("period %s, few peers: %s, want %s", period, got, want+8*time.Second)
		}
	}
}

// What the second ports must tell.
func TestPortsTell(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name                 string
		size, reached, known int
		want                 bool
	}{
		{"all", 12, 0, 12, true}, {"half", 12, 0, 6, true}, {"fewer than half", 12, 0, 5, false}, {"half of those not reached", 12, 2, 5, true},
		{"none", 12, 0, 0, false}, {"one of two", 2, 0, 1, false}, {"two of two", 2, 0, 2, true},
	} {
		s := newScript()
		s.size = test.size
		s.play(5)
		s.play(1, cutOff(test.reached, test.known))
		if isShort := s.last.noted() != nil; isShort != test.want {
			t.Errorf("%s: %t", test.name, isShort)
		}
	}
}

// After the short wait nobody is accused unless all others are known to be there and
// well. What is not clear then is asked again after the long wait.
func TestShortWaitIsStrict(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name              string
		suspects, excused int
		noLease, accused  bool
	}{
		{"all well", 0, 0, false, true}, {"one suspects", 1, 0, false, false}, {"one is excused", 0, 1, false, true},
		{"too few count", 0, 11, false, false}, {"most are gone", 0, 10, false, false},
		{"all are gone", 0, 12, false, false}, {"no Lease is known", 0, 0, true, false},
	} {
		s := played(5)
		s.play(1, cutOff(0, 12))
		begin := s.now
		s.untilAsked(t, cutOff(0, 12))
		answered := []change{cutOff(0, 12), s.standing(test.suspects, test.excused), func(*Round) {
			reply := s.reply
			s.reply = func(ask []string) []Standing {
				standings := reply(ask)
				for i := range standings {
					if test.noLease {
						standings[i].Renewed = time.Time{}
					}
				}
				return standings
			}
		}}
		o := s.play(1, answered...)
		if accused := o.Reason == "CutOff"; accused != test.accused {
			t.Errorf("%s: %+v", test.name, o)
		}
		if test.accused {
			continue
		}
		// Others may renew their Leases until these tell; one that suspects itself is enough.
		if o.Reason != ReasonPeersUnreachable || test.suspects > 0 && !o.Due.IsZero() {
			t.Errorf("%s: %+v", test.name, o)
		}
		if test.suspects == 0 {
			if o := s.play(1, answered...); o.Reason != ReasonPeersUnreachable || !o.Due.IsZero() {
				t.Errorf("%s, when the Leases tell: %+v", test.name, o)
			}
		}
		s.untilAsked(t, cutOff(0, 12))
		if wait := s.now.Sub(begin); wait < suspicionWait(testPeriod) || wait > suspicionWait(testPeriod)+suspicionJitter+testPeriod {
			t.Errorf("%s: asked again after %s", test.name, wait)
		}
		if o := s.play(1, cutOff(0, 12), s.standing(1, 0)); o.Reason != "CutOff" {
			t.Errorf("%s: after the long wait: %+v", test.name, o)
		}
	}
}

// A slow host, or one that reaches no API server, is in no hurry.
func TestNothingDue(t *testing.T) {
	t.Parallel()
	s := played(5)
	s.play(1, cutOff(0, 12))
	if o := s.play(1, cutOff(0, 12), late); !o.Due.IsZero() {
		t.Errorf("slow: %+v", o)
	}
	if o := s.play(5, cutOff(0, 12), class(API, Failed, "")); !o.Due.IsZero() || s.last.noted() != nil {
		t.Errorf("silent API server: %+v", s.last)
	}
	if o := s.play(3, cutOff(0, 12)); !o.Due.IsZero() {
		t.Errorf("the API server is back, and others may be soon: %+v", o)
	}
	if o := s.play(1); !o.Due.IsZero() {
		t.Errorf("well: %+v", o)
	}
}
