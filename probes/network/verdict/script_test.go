package verdict

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/taintlet/taintlet/probes"
)

const testPeriod = 5 * time.Second

// script plays rounds to an Evaluator. A round is well unless it is changed.
type script struct {
	evaluator *Evaluator
	now       time.Time
	size      int // peers
	last      Verdict
	// reply answers what a verdict asks; nil: nobody answers.
	reply func(ask []string) []Standing
}

func newScript() *script {
	return &script{evaluator: NewEvaluator(testPeriod, 7), now: time.Unix(1000, 0), size: 12}
}

// played is a script of which so many healthy rounds were played.
func played(rounds int) *script {
	s := newScript()
	s.play(rounds)
	return s
}

// rounds is how many were played.
func (s *script) rounds() int { return int(s.now.Sub(time.Unix(1000, 0)) / testPeriod) }

// well is a round in which nothing is wrong.
func (s *script) well() Round {
	r := Round{At: s.now, Results: map[Class]Result{}}
	for _, c := range Classes() {
		r.Results[c] = Result{Outcome: Well}
	}
	for i := range s.size {
		r.Peers = append(r.Peers, PeerResult{Node: fmt.Sprintf("peer-%d", i), Reached: true, Full: Passed, FullNow: true, Answer: &Answer{
			Version: AnswerVersion, Classes: map[Class]bool{Pods: true, DNS: true, Local: true}, Reach: 100,
		}})
	}
	return r
}

// change is what is different in a round.
type change func(*Round)

// The Leases of all were renewed before when they are noted, and since then when they are asked about.
var before, since = time.Unix(1, 0), time.Unix(2, 0)

// play plays rounds that are well but for the changes. What is noted is answered.
func (s *script) play(rounds int, changes ...change) probes.Observation {
	for range rounds {
		s.now = s.now.Add(testPeriod)
		r := s.well()
		s.reply = nil
		for _, c := range changes {
			c(&r)
		}
		s.last = s.evaluator.Next(r)
		if s.reply != nil && s.last.Ask != nil {
			r.Standings = s.reply(s.last.Ask)
		}
		for _, node := range s.last.noted() {
			r.Standings = append(r.Standings, Standing{Node: node, Renewed: before})
		}
		if r.Standings != nil {
			s.last = s.evaluator.Answered(r)
		}
	}
	return s.last.Observation
}

// noted are the Nodes whose Leases alone are to be read.
func (v *Verdict) noted() []string {
	if v.Ask != nil {
		return nil
	}
	return v.Leases
}

// until plays rounds until a reason comes, and returns how long that took: at most
// five minutes.
func (s *script) until(reason string, changes ...change) (time.Duration, bool) {
	for begin := s.now; s.now.Sub(begin) < 5*time.Minute; {
		if s.play(1, changes...); s.last.Observation.Reason == reason {
			return s.now.Sub(begin), true
		}
	}
	return 0, false
}

// standing answers what was asked: so many suspect themselves, so many are excused.
func (s *script) standing(suspects, excused int) change {
	return func(*Round) {
		s.reply = func(ask []string) []Standing {
			standings := []Standing{}
			for i, node := range ask {
				standing := Standing{Node: node, Suspects: i < suspects, Renewed: since}
				if i >= suspects && i < suspects+excused {
					standing.Excuse = "is not ready"
				}
				standings = append(standings, standing)
			}
			return standings
		}
	}
}

func class(c Class, o Outcome, detail string) change {
	return func(r *Round) { r.Results[c] = Result{Outcome: o, Detail: detail} }
}

// reachOnly makes all peers but the first ones unreachable.
func reachOnly(reached int) change {
	return func(r *Round) {
		for i := reached; i < len(r.Peers); i++ {
			r.Peers[i] = PeerResult{Node: r.Peers[i].Node}
		}
	}
}

// secondPortOnly is reachOnly, with the second port open.
func secondPortOnly(reached int) change {
	return func(r *Round) {
		for i := reached; i < len(r.Peers); i++ {
			r.Peers[i] = PeerResult{Node: r.Peers[i].Node, ReachedOther: true}
		}
	}
}

// mute makes the first peers give no answer that can be read.
func mute(peers int) change {
	return func(r *Round) {
		for i := range peers {
			r.Peers[i].Answer = nil
		}
	}
}

// hanging makes the first peers take connections and give no answer.
func hanging(peers int) change {
	return func(r *Round) {
		mute(peers)(r)
		for i := range peers {
			r.Peers[i].Hangs = true
		}
	}
}

// cutOff is reachOnly, where the second ports of the last ones were known.
func cutOff(reached, known int) change {
	return func(r *Round) {
		reachOnly(reached)(r)
		for i := len(r.Peers) - known; i < len(r.Peers); i++ {
			r.Peers[i].OtherKnown = true
		}
	}
}

// retransmits makes connections to the first peers have retransmits.
func retransmits(peers int) change {
	return func(r *Round) {
		for i := range peers {
			r.Peers[i].Retransmits = 2
		}
	}
}

// retransmitsInTurn is that of one or two peers in each round, of others each time.
func retransmitsInTurn(r *Round) {
	number := int(r.At.Unix() / int64(testPeriod/time.Second))
	for i := range 1 + number%2 {
		r.Peers[(2*number+i)%len(r.Peers)].Retransmits = 2
	}
}

// answers changes what each peer says.
func answers(do func(i int, a *Answer)) change {
	return func(r *Round) {
		for i := range r.Peers {
			if a := r.Peers[i].Answer; a != nil {
				do(i, a)
			}
		}
	}
}

// carried makes all peers those of a round before.
func carried(r *Round) {
	for i := range r.Peers {
		r.Peers[i].Carried = true
	}
}

func late(r *Round) { r.Late = true }

// onlyPod is the one DNS pod that this host asks, and fails to reach. Of the peers
// that ask it, so many do not reach it either.
func onlyPod(know, fail int) change {
	pod, another := netip.MustParseAddrPort("10.1.0.1:53"), netip.MustParseAddrPort("10.2.0.1:53")
	return func(r *Round) {
		r.Results[Pods] = Result{Outcome: Failed, Pods: map[netip.AddrPort]bool{pod: false}}
		answers(func(i int, a *Answer) {
			a.Pods = map[netip.AddrPort]bool{another: true}
			if i < know {
				a.Pods[pod] = i >= fail
			}
		})(r)
	}
}

// never makes a class fail that was never well.
func never(c Class) change {
	return func(r *Round) { r.Results[c] = Result{Never: true} }
}

// closedTo adds so many peers that were never reached.
func closedTo(n int) change {
	return func(r *Round) {
		chosen := make([]Peer, n+len(r.Peers))
		for i := range chosen {
			chosen[i].Address = netip.MustParseAddrPort("192.0.2.1:4808")
		}
		r.NeverReached = n
		r.Results[Peers] = PeersResult(r.Peers, chosen)
	}
}

// fullLost makes full packets get lost on the way to the first peers.
func fullLost(peers int) change {
	return func(r *Round) {
		for i := range peers {
			r.Peers[i].Full = Lost
		}
	}
}

// counting makes the first peers count an exchange of full packets in each round, and the
// next ones say that these are lost on their way too.
func counting(count, lost int) change {
	return func(r *Round) {
		number := int(r.At.Unix())
		answers(func(i int, a *Answer) {
			switch {
			case i < count:
				a.Full = number
			case i < count+lost:
				a.Full = lostHere
			}
		})(r)
	}
}
