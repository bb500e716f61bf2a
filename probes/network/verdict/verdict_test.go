package verdict

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
)

var writeTable = flag.Bool("write-table", false, "write the verdict's table into ../README.md")

// rows are those of the verdict's table: the first that holds is the verdict.
var rows = []struct {
	reason string
	level  probes.Level
	near   bool
}{
	{"RouteLost", probes.Degraded, false}, {"ConntrackDrops", probes.Degraded, false}, {"PodsUnreachable", probes.Degraded, false},
	{"DNSUnreachable", probes.Degraded, false}, {"NodeDaemonFails", probes.Degraded, false}, {"PacketLoss", probes.Degraded, false},
	{"LargePacketsLost", probes.Degraded, false}, {"CutOff", probes.Degraded, false}, {ReasonPeersUnreachable, probes.Unknown, false},
	{ReasonManySuspect, probes.Unknown, false}, {"HostSlow", probes.Unknown, false}, {"APIServerSilent", probes.Unknown, false},
	{"SomePeersUnreachable", probes.Unknown, false}, {"NotProven", probes.Unknown, false}, {"RouteNotKnown", probes.Unknown, false},
	{"NotYetSure", probes.OK, true}, {"NeverHealthy", probes.OK, true},
	{ReasonPeersNeverReached, probes.OK, false}, {ReasonPortBlocked, probes.OK, false}, {"NoPeerAnswers", probes.OK, false}, {"NetworkHealthy", probes.OK, false},
}

// examples plays what makes each row hold, by reason.
func examples() map[string]func(*script) probes.Observation {
	noDNS := told(DNS, "no nameserver answers")
	return map[string]func(*script) probes.Observation{
		"RouteLost": func(s *script) probes.Observation {
			return s.play(1, told(Route, "no carrier"))
		},
		"ConntrackDrops": func(s *script) probes.Observation {
			return s.play(3, told(Conntrack, "packets dropped"))
		},
		"PodsUnreachable": func(s *script) probes.Observation {
			return s.play(15, told(Pods, "DNS pods do not answer"))
		},
		"DNSUnreachable": func(s *script) probes.Observation { return s.play(7, noDNS) },
		"NodeDaemonFails": func(s *script) probes.Observation {
			return s.play(21, told(Local, "unhealthy daemon"))
		},
		"PacketLoss": func(s *script) probes.Observation {
			s.play(10)
			return s.play(16, func(r *Round) {
				if s.now.Unix()%15 == 0 {
					retransmits(8)(r)
				}
			})
		},
		"LargePacketsLost": func(s *script) probes.Observation { return s.play(5, fullLost(12), counting(12, 0)) },
		"CutOff": func(s *script) probes.Observation {
			s.until("CutOff", reachOnly(1), s.standing(1, 0))
			return s.last.Observation
		},
		ReasonPeersUnreachable: func(s *script) probes.Observation { return s.play(3, reachOnly(0)) },
		ReasonManySuspect: func(s *script) probes.Observation {
			s.until(ReasonManySuspect, reachOnly(0), s.standing(4, 0))
			return s.last.Observation
		},
		"HostSlow": func(s *script) probes.Observation { return s.play(7, noDNS, late) },
		"APIServerSilent": func(s *script) probes.Observation {
			s.play(6, noDNS)
			return s.play(1, noDNS, class(API, Failed, "no answer in time"))
		},
		"SomePeersUnreachable": func(s *script) probes.Observation { return s.play(3, reachOnly(6)) },
		"NotProven": func(s *script) probes.Observation {
			return s.play(7, noDNS, answers(func(i int, a *Answer) { a.Classes[DNS] = i < 3 }))
		},
		"NotYetSure": func(s *script) probes.Observation { return s.play(1, noDNS) },
		ReasonPortBlocked: func(s *script) probes.Observation {
			return s.play(3, secondPortOnly(0))
		},
		ReasonPeersNeverReached: func(s *script) probes.Observation {
			s.size = 0
			return s.play(int((neverHolds+time.Minute)/testPeriod), closedTo(12))
		},
		"NeverHealthy": func(s *script) probes.Observation {
			return s.play(1, told(DNS, "no nameserver ever answered"))
		},
		"RouteNotKnown": func(s *script) probes.Observation {
			return s.play(1, told(Route, "no carrier since the start"))
		},
		"NoPeerAnswers":  func(s *script) probes.Observation { return s.play(3, mute(12)) },
		"NetworkHealthy": func(s *script) probes.Observation { return s.play(1) },
	}
}

// inDocs has what ../README.md says of each row, by reason: its evidence, and the
// proof that it needs.
func inDocs() map[string]struct{ evidence, needs string } {
	const needsPeers = "3 peers know the class, or half of the peers that were asked, and two thirds of these report it as healthy"
	return map[string]struct{ evidence, needs string }{
		"RouteLost":       {"the kernel had a default route, or a route to the API server, and lost it, or the interface has no carrier", "while there is carrier: both routes are lost, or api, pods, dns or peers fails too"},
		"ConntrackDrops":  {"the connection table dropped packets in 3 of 5 rounds, or was full where the kernel does not show drops", "where it was full: api, pods, dns or peers fails too"},
		"PodsUnreachable": {"no DNS pod on another Node answers, 3 of 5 rounds and 65 s, or 20 s", needsPeers + "; after 20 s, all peers that know the same pods; of a single pod, the reports of that pod; 80 % of the peers reached"},
		"DNSUnreachable":  {"no nameserver answers, or all with errors such as SERVFAIL, 3 of 5 rounds and 34 s, or 20 s", needsPeers + "; after 20 s, all of these"},
		"NodeDaemonFails": {"a network daemon of the Node is not healthy, 3 of 5 rounds and 100 s", needsPeers},
		"PacketLoss": {
			"10 % of the connections of 30 s to peers had retransmits, to half of the peers or more; for 54 s, or 15 % of them for 15 s",
			"the peers' median is three times lower, also without the peers that lose as much or do not report it; after 15 s, half of the peers reported their loss within 10 s, and none loses half as much",
		},
		"LargePacketsLost": {
			"full packets get lost on the way to or from half of the peers and at least two, 3 of 5 rounds and 10 s, and small ones do not",
			"3 peers know it, or half of the peers that were asked, and two thirds of these have exchanged full packets with others since then and lose few",
		},
		"CutOff": {
			"at most 20 % of the peers reached, 3 of 5 rounds; suspected for 10 s, or for 55 s",
			"by the API server, all other hosts are healthy after 10 s (18 s with fewer than six peers), or more than half of 5 after 55 s",
		},
		ReasonPeersUnreachable: {"at most 20 % of the peers reached in this round", "time, in which other hosts can report the same"},
		ReasonManySuspect: {
			"at most 20 % of the peers reached; half of the others or more suspect themselves, or too few count; or the peers that are reached reach a part of theirs",
			"nothing; the next question follows after a minute",
		},
		"HostSlow":             {"the control probe or the round itself was late, and something failed", "nothing"},
		"APIServerSilent":      {"a row above would be Degraded, but the API server does not answer", "nothing"},
		"SomePeersUnreachable": {"20 to 80 % of the peers reached, 3 of 5 rounds", "nothing: either this host or the others are at fault"},
		"NotProven":            {"pods, dns or local fails or packets get lost in 3 of 5 rounds, a route is lost, the connection table is full, or 80 % of the peers take connections and do not answer, without the proof that its row needs", "nothing"},
		"RouteNotKnown":        {"the kernel does not answer any more, or the interface has had no carrier since the start", "nothing"},
		"NotYetSure":           {"a check failed in one of the last 5 rounds, or 7 to 10 % of the connections had retransmits", "nothing"},
		"NeverHealthy": {
			"pods, dns or local fails since the agent started and is healthy at two thirds of the peers; or no peer was ever reached, for the first 5 min",
			"nothing: the fault can be older than the agent",
		},
		ReasonPeersNeverReached: {
			"a fifth of the peers and at least two, or all, were never reached, for 5 min",
			"nothing: taintlet's port can be closed. If no peer was reached, it clears nothing in the first hour",
		},
		ReasonPortBlocked: {"20 % of the peers or more answer at their second port only, 3 of 5 rounds", "nothing: the network is healthy"},
		"NoPeerAnswers":   {"80 % of the peers or more are reached and refuse or give an answer that cannot be read, 3 of 5 rounds", "nothing: their agents can be down, or of another release"},
		"NetworkHealthy":  {"none of the above", "nothing"},
	}
}

// table is the verdict's table as ../README.md has it. The examples are what
// the code says.
func table(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| reason | level | evidence | also needed | example of a message |\n|---|---|---|---|---|\n")
	for _, row := range rows {
		play, ok := examples()[row.reason]
		if !ok {
			t.Fatalf("no example of %s", row.reason)
		}
		s := played(1)
		level := row.level.String()
		if row.near {
			level = "OK, near"
		}
		text, ok := inDocs()[row.reason]
		if !ok {
			t.Fatalf("inDocs has no %s", row.reason)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | `%s` |\n", row.reason, level, text.evidence, text.needs, play(s).Message)
	}
	return b.String()
}

func TestEveryRowHoldsForItsExample(t *testing.T) {
	t.Parallel()
	if len(rows) != len(examples()) {
		t.Errorf("%d rows, %d examples", len(rows), len(examples()))
	}
	for _, row := range rows {
		s := played(1)
		o := examples()[row.reason](s)
		if o.Reason != row.reason || o.Level != row.level || o.Hysteresis != row.near || o.Condition != probes.NetworkUnavailable {
			t.Errorf("the example of %s is %+v", row.reason, o)
		}
		if o.Suspicion != IsSuspicion(o.Reason) || o.Suspicion && o.Level != probes.Unknown {
			t.Errorf("%s: suspicion is %t", row.reason, o.Suspicion)
		}
		if o.Message == "" || strings.HasPrefix(o.Message, ";") {
			t.Errorf("%s: message %q", row.reason, o.Message)
		}
		if bad := o.Severity >= 50; bad != (o.Level == probes.Degraded) {
			t.Errorf("%s: severity %d at level %s", row.reason, o.Severity, o.Level)
		}
	}
}

func TestTableInDocs(t *testing.T) {
	const page, begin, end = "../README.md", "<!-- verdict -->\n", "<!-- end of verdict -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := bytes.Cut(text, []byte(begin))
	documented, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		t.Fatalf("%s has no table between %q and %q", page, begin, end)
	}
	want := table(t)
	if *writeTable {
		all := string(before) + begin + want + end + string(after)
		if err := os.WriteFile(page, []byte(all), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(documented) != want {
		t.Errorf("the table of %s is not that of the code; go test ./probes/network/verdict -run TestTableInDocs -write-table. The code's:\n%s", page, want)
	}
}

// What is needed besides the evidence: without it, nothing is accused.
func TestNotAccused(t *testing.T) {
	t.Parallel()
	noDNS, noPods, noLocal := class(DNS, Failed, ""), class(Pods, Failed, ""), class(Local, Failed, "")
	silent := func(r *Round) { r.Results[API] = Result{Outcome: Failed} }
	for _, test := range []struct {
		name    string
		peers   int
		changes []change
	}{
		{"dns fails for two fifths", 12, []change{noDNS, answers(func(i int, a *Answer) { a.Classes[DNS] = i > 4 })}},
		{"dns fails and no peer knows it", 12, []change{noDNS, answers(func(_ int, a *Answer) { a.Classes = nil })}},
		{"dns fails and there is no peer", 0, []change{noDNS}},
		{"dns fails and the API server is silent", 12, []change{noDNS, silent}},
		{"dns fails and the API server is not known", 12, []change{noDNS, class(API, NotKnown, "")}},
		{"dns fails and the round is late", 12, []change{noDNS, late}},
		{"dns fails and the control probe too", 12, []change{noDNS, class(Self, Failed, "")}},
		{"the only pod fails for five of twelve", 12, []change{onlyPod(12, 5)}},
		{"the only pod fails and no peer asks it", 12, []change{onlyPod(0, 0)}},
		{"the only pod fails and a third of the peers is gone", 12, []change{onlyPod(12, 0), reachOnly(8)}},
		{"pods fail and a third of the peers is gone", 12, []change{noPods, reachOnly(8)}},
		{"local fails and the API server is silent", 12, []change{noLocal, silent}},
		{"loss, and the API server is silent", 12, []change{retransmits(12), silent}},
		{"loss, late", 12, []change{retransmits(12), noDNS, late}},
		{"loss, long ago", 12, []change{retransmits(12), carried}},
		{"loss with few peers", 12, []change{retransmits(5)}},
		{"loss of peers too", 12, []change{retransmits(12), answers(func(_ int, a *Answer) { a.Lossy = 34 })}},
		{"loss and no peer knows its own", 12, []change{retransmits(12), answers(func(_ int, a *Answer) { a.Lossy = -1 })}},
		{"loss to the half that loses as much", 12, []change{retransmits(6), answers(func(i int, a *Answer) { a.Lossy = max(0, 80-20*i) })}},
		{"loss to the half that does not say", 12, []change{retransmits(6), answers(func(i int, a *Answer) { a.Lossy = min(0, i-6) })}},
		{"loss with one peer", 1, []change{retransmits(1)}},
		{"no peer reached, and the API server is silent", 12, []change{reachOnly(0), silent}},
		{"no peer reached, and no answer about others", 12, []change{reachOnly(0)}},
		{"one peer of one", 1, []change{reachOnly(0)}},
		{"a quarter of the peers reached", 12, []change{reachOnly(3)}},
	} {
		s := newScript()
		s.size = test.peers
		for range 120 {
			changes := test.changes
			if !strings.Contains(test.name, "no answer about") {
				changes = append(changes[:len(changes):len(changes)], s.standing(0, 0))
			}
			if o := s.play(1, changes...); o.Level == probes.Degraded {
				t.Errorf("%s: %+v", test.name, o)
				break
			}
		}
	}
}

// How long each row takes, from the first bad round.
func TestWhenAccused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason   string
		from, to time.Duration
		change   change
	}{
		{reasonRouteLost, 5 * time.Second, 5 * time.Second, told(Route, "no carrier")},
		{reasonRouteLost, 5 * time.Second, 5 * time.Second, told(Route, "no route nor to the API server")},
		{reasonRouteLost, 5 * time.Second, 5 * time.Second, func(r *Round) { told(Route, "no route")(r); class(DNS, Failed, "")(r) }},
		{"ConntrackDrops", 15 * time.Second, 15 * time.Second, told(Conntrack, "packets dropped")},
		{"ConntrackDrops", 15 * time.Second, 15 * time.Second, func(r *Round) { told(Conntrack, "connection table full")(r); class(DNS, Failed, "")(r) }},
		{"DNSUnreachable", 25 * time.Second, 25 * time.Second, class(DNS, Failed, "")},
		{"PodsUnreachable", 70 * time.Second, 70 * time.Second, class(Pods, Failed, "")}, // no peer names its pods
		{"PodsUnreachable", 70 * time.Second, 70 * time.Second, onlyPod(12, 4)},
		{"PodsUnreachable", 25 * time.Second, 25 * time.Second, onlyPod(12, 0)},
		{"PodsUnreachable", 25 * time.Second, 25 * time.Second, onlyPod(3, 0)},
		{"NodeDaemonFails", 105 * time.Second, 105 * time.Second, class(Local, Failed, "")},
		{"PacketLoss", 20 * time.Second, 20 * time.Second, retransmits(12)},
		{"PacketLoss", 60 * time.Second, 85 * time.Second, retransmitsInTurn}, // 12 %: not enough for the short time
		{"CutOff", 60 * time.Second, 70 * time.Second, reachOnly(2)},
	} {
		s := played(12)
		took, ok := s.until(test.reason, test.change, s.standing(0, 0))
		if !ok || took < test.from || took > test.to {
			t.Errorf("%s after %s, want %s to %s", test.reason, took, test.from, test.to)
		}
	}
}

// A host without a default route is meant to have none, so a fault that is over clears: in an
// air-gapped cluster, and with an API server of its own. One that fails since the start may
// have lost it before.
func TestHostsWithoutADefaultRoute(t *testing.T) {
	t.Parallel()
	route, s := told(Route, "no route since the start"), newScript()
	if o := s.play(12, route); o.Level != probes.OK || o.Hysteresis || len(o.NeverHealthy) > 0 {
		t.Errorf("at first: %+v", o)
	}
	if o := s.play(20, route, told(DNS, "no nameserver answers")); o.Reason != "DNSUnreachable" {
		t.Errorf("DNS fails: %+v", o)
	}
	if o := s.play(60, route); o.Level != probes.OK || o.Hysteresis {
		t.Errorf("DNS is back: %+v", o)
	}
	s = newScript()
	if o := s.play(1, route, told(Peers, "DNS pods never answered")); !slices.Contains(o.NeverHealthy, reasonRouteLost) {
		t.Errorf("peers are not reached since the start: %+v", o)
	}
}

// Where no peer has the same, and most of them are there, one sample is enough. After the long
// wait it is not: chance may be part of it.
func TestCertainIfAlone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		ill     int // peers whose DNS is not well either
		reached int
		want    bool
	}{{0, 12, true}, {4, 12, false}, {0, 10, true}, {0, 8, false}} {
		s := played(12)
		ill := answers(func(i int, a *Answer) { a.Classes[DNS] = i >= test.ill })
		if _, ok := s.until("DNSUnreachable", class(DNS, Failed, ""), ill, reachOnly(test.reached)); !ok || s.last.Observation.Certain != test.want {
			t.Errorf("%d peers have the same, %d are there: %+v", test.ill, test.reached, s.last.Observation)
		}
	}
}

// Whatever peers answer and Nodes say of themselves: where this host's own checks
// are well, nothing is accused.
func TestPeersNeverAccuse(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	s := played(1)
	lie := answers(func(_ int, a *Answer) {
		a.Lossy, a.Reach = random.IntN(400)-200, random.IntN(400)-200
		for _, c := range Classes() {
			a.Classes[c] = random.IntN(2) == 0
		}
	})
	for range 5000 {
		o := s.play(1, lie, func(r *Round) {
			r.Standings = []Standing{{Node: "peer-1"}, {Node: "peer-2", Suspects: true}, {Node: "peer-99"}}
		})
		if o.Level != probes.OK {
			t.Fatalf("accused by what peers say: %+v", o)
		}
	}
}

func TestSlowRoundsAreNoEvidence(t *testing.T) {
	t.Parallel()
	s := played(1)
	s.play(20, class(DNS, Failed, ""), reachOnly(0), retransmits(0), late)
	if o := s.play(1); o.Reason != "NetworkHealthy" {
		t.Errorf("after slow rounds: %+v", o)
	}
	if o := s.play(1, late); o.Reason != "NetworkHealthy" {
		t.Errorf("a late round in which nothing failed: %+v", o)
	}
}

// Loss to few of the peers is theirs: this host is well.
func TestLossOfFewPeers(t *testing.T) {
	t.Parallel()
	s := newScript()
	if o := s.play(20, retransmits(5)); o.Reason != "NetworkHealthy" {
		t.Errorf("%+v", o)
	}
	// Below the threshold that sets, and not below the easier one.
	s = newScript()
	few := func(r *Round) {
		if s.now.Unix()%30 == 0 {
			retransmits(6)(r)
		}
	}
	if o := s.play(24, few); o.Reason != "NotYetSure" || !o.Hysteresis || o.Severity != 25 {
		t.Errorf("8 %%: %+v", o)
	}
}

// A restart of the agent forgets what was well. It must not clear a taint.
func TestNeverHealthyClearsNothing(t *testing.T) {
	t.Parallel()
	s := newScript()
	if o := s.play(1000, never(DNS)); o.Reason != "NeverHealthy" || !o.Hysteresis {
		t.Errorf("dns never well here, and well at peers: %+v", o)
	}
	nobodyKnows := answers(func(_ int, a *Answer) { a.Classes = nil })
	if o := s.play(1, never(DNS), nobodyKnows); o.Reason != "NetworkHealthy" {
		t.Errorf("dns never well anywhere: %+v", o)
	}
	s = newScript()
	s.size = 0
	if o := s.play(int(neverReachedFor/testPeriod), closedTo(12)); o.Reason != "NeverHealthy" || !o.Hysteresis || o.Warns {
		t.Errorf("no peer ever reached: %+v", o)
	}
	if o := s.play(int((neverHolds-neverReachedFor)/testPeriod), closedTo(12)); o.Reason != ReasonPeersNeverReached || !o.Hysteresis || !o.Warns {
		t.Errorf("no peer ever reached in an hour: %+v", o)
	}
	if o := s.play(1, closedTo(12)); o.Reason != ReasonPeersNeverReached || o.Hysteresis || !o.Warns {
		t.Errorf("an hour later: %+v", o)
	}
}

// After a restart a good verdict says nothing of packet loss before it was measured: by 15
// connections, or of few peers by half a minute without a retransmit.
func TestLossIsMeasuredAfterARestart(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		peers   int
		changes []change
		want    int // rounds until it is
	}{{12, nil, 2}, {3, nil, 5}, {2, nil, 7}, {2, []change{retransmits(1)}, 100}, {2, []change{carried}, 100}} {
		s := newScript()
		s.size = test.peers
		rounds := 1
		for ; rounds < 100 && slices.Contains(s.play(1, test.changes...).NeverHealthy, "PacketLoss"); rounds++ {
		}
		if rounds != test.want {
			t.Errorf("%d peers: %d rounds, want %d", test.peers, rounds, test.want)
		}
	}
}

// A good verdict names what it does not prove: whatever was not seen well since the start.
func TestVerdictNamesWhatWasNeverHealthy(t *testing.T) {
	t.Parallel()
	off := func(c Class) change { return func(r *Round) { delete(r.Results, c) } }
	nothing := func(c Class) change { return class(c, NotKnown, "") }
	nobodyKnows := answers(func(_ int, a *Answer) { a.Classes = nil })
	few := func(r *Round) { r.Peers = r.Peers[:2] }
	for _, test := range []struct {
		name    string
		want    string
		changes []change
	}{
		{"all well", "", nil},
		{"a daemon is stuck", "NodeDaemonFails", []change{never(Local)}},
		{"stuck, and nobody else has one", "NodeDaemonFails", []change{never(Local), nobodyKnows}},
		{"the daemon is gone", "NodeDaemonFails", []change{nothing(Local)}},
		{"gone here and elsewhere", "", []change{nothing(Local), nobodyKnows}},
		{"switched off", "", []change{off(Local)}},
		{"no DNS pod ever", "PodsUnreachable", []change{never(Pods)}},
		{"there is no DNS pod", "", []change{nothing(Pods)}},
		{"no DNS ever", "DNSUnreachable", []change{never(DNS)}},
		{"no nameserver is named", "DNSUnreachable", []change{nothing(DNS)}},
		{"no peer ever", "PacketLoss LargePacketsLost CutOff", []change{never(Peers), func(r *Round) { r.Peers = nil }}},
		{"few peers ever", "PacketLoss LargePacketsLost CutOff", []change{never(Peers), few}},
		{"no peers are known, nor does the API server answer", "PacketLoss LargePacketsLost CutOff", []change{nothing(Peers), func(r *Round) { r.Peers = nil }, class(API, Failed, "")}},
		{"there are no peers", "", []change{nothing(Peers), func(r *Round) { r.Peers = nil }}},
		{"peers are switched off", "", []change{off(Peers), func(r *Round) { r.Peers = nil }}},
	} {
		s := newScript()
		for range int(2 * time.Hour / testPeriod) {
			if o := s.play(1, test.changes...); o.Level != probes.OK || strings.Join(o.NeverHealthy, " ") != test.want && s.rounds() > 5 {
				t.Errorf("%s: %s, %q, want %q", test.name, o.Level, o.NeverHealthy, test.want)
				break
			}
		}
		if o := s.play(5); len(o.NeverHealthy) > 0 {
			t.Errorf("%s, and then well: %q", test.name, o.NeverHealthy)
		}
		if o := s.play(1, test.changes...); len(o.NeverHealthy) > 0 {
			t.Errorf("%s, and it was well once: %q", test.name, o.NeverHealthy)
		}
	}
}

// Peers that were never reached are told where they are many, and only after a time
// in which the dead leave the list. What else is wrong is told first.
func TestPeersNeverReachedAreTold(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reached, never int
		want           string
	}{{0, 1, ReasonPeersNeverReached}, {9, 3, ReasonPeersNeverReached}, {10, 2, "NetworkHealthy"}, {1, 1, "NetworkHealthy"}, {2, 2, ReasonPeersNeverReached}} {
		s := newScript()
		s.size = test.reached
		if o := s.play(int(neverReachedFor/testPeriod), closedTo(test.never)); o.Reason == ReasonPeersNeverReached {
			t.Errorf("%+v: told before its time: %+v", test, o)
		}
		if o := s.play(3, closedTo(test.never)); o.Reason != test.want || o.Level != probes.OK {
			t.Errorf("%+v: %+v", test, o)
		}
		if test.reached > 0 {
			if o := s.play(1, closedTo(test.never), never(DNS)); o.Reason != "NeverHealthy" {
				t.Errorf("%+v, and DNS was never well: %+v", test, o)
			}
		}
	}
}

// The same rounds and the same seed give the same verdicts.
func TestSameSeedSameVerdicts(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) (all []Verdict) {
		s := newScript()
		s.evaluator = NewEvaluator(testPeriod, seed)
		for i := range 60 {
			if s.play(1, reachOnly(1)); i%2 == 1 {
				all = append(all, s.last) // with whom it asks about
				s.play(1, reachOnly(1), s.standing(3, 0))
			}
			all = append(all, s.last)
		}
		return all
	}
	if !reflect.DeepEqual(run(1), run(1)) {
		t.Error("the same seed gives other verdicts")
	}
	if reflect.DeepEqual(run(1), run(2)) {
		t.Error("another seed gives the same verdicts")
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	s := newScript()
	s.play(1, class(Local, NotKnown, ""))
	if a := s.last.Own; !reflect.DeepEqual(a, Answer{
		Version: AnswerVersion, Classes: map[Class]bool{Pods: true, DNS: true}, Full: 12, Lossy: -1, Reach: 100,
	}) {
		t.Errorf("after a round: %+v", a)
	}
	s.play(3, class(DNS, Failed, ""), retransmits(6))
	if a := s.last.Own; a.Classes[DNS] || a.Lossy != 50 {
		t.Errorf("after failures: %+v", a)
	}
	s.play(4)
	if a := s.last.Own; a.Classes[DNS] {
		t.Error("a class that failed in one of the last 5 rounds is reported well")
	}
	s.play(1, reachOnly(3))
	if a := s.last.Own; !a.Classes[DNS] || a.Reach != 25 {
		t.Errorf("5 rounds later: %+v", a)
	}
	s.size = 1
	s.play(1)
	if a := s.last.Own; a.Reach != -1 {
		t.Errorf("with one peer: %+v", a)
	}
	s.play(1, onlyPod(0, 0))
	if a := s.last.Own; len(a.Pods) != 1 || a.Pods[netip.MustParseAddrPort("10.1.0.1:53")] {
		t.Errorf("after a round without the one pod: %+v", a)
	}
}

// While DNS fails for all and most peers give no answer, one or two that lie accuse
// nobody. In a small cluster, half of the peers are enough.
func TestFewWitnesses(t *testing.T) {
	speak := func(count int) change {
		return func(r *Round) {
			for i := count; i < len(r.Peers); i++ {
				r.Peers[i].Answer = nil
			}
		}
	}
	for _, test := range []struct {
		peers, speak int
		accused      bool
	}{{12, 1, false}, {12, 2, false}, {12, 3, true}, {5, 2, false}, {5, 3, true}, {4, 2, true}, {4, 1, false}, {2, 1, true}, {1, 1, true}, {12, 0, false}} {
		s := newScript()
		s.size = test.peers
		s.play(5)
		o := s.play(24, class(DNS, Failed, ""), speak(test.speak))
		if accused := o.Level == probes.Degraded && o.Reason == "DNSUnreachable"; accused != test.accused {
			t.Errorf("%d of %d peers say that DNS is well: %s %s %s", test.speak, test.peers, o.Level, o.Reason, o.Message)
		}
	}
}
