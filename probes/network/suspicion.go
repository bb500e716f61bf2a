package network

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// How a suspicion is checked.
const (
	// askSome of the peers that are not reached are asked about.
	askSome = 5
	// askAgain is when others are asked about after an answer.
	askAgain = time.Minute
	// askPatience is how long an answer may take.
	askPatience = 30 * time.Second
	// suspicionJitter is added to a wait, so that a fleet does not ask at once.
	suspicionJitter = 10 * time.Second
	shortJitter     = time.Second
)

// suspicionWait is how long a host suspects itself before it asks about others.
// By then all others must have had the time to suspect themselves too. A fault
// may take half a minute to reach the last host, which then needs some rounds to
// see it and a moment to say so. And hosts that lost power are Ready for 50 s,
// plus the 5 s in which the control plane notices (--node-monitor-grace-period,
// --node-monitor-period); the first suspicion comes 10 s after the fault.
func suspicionWait(period time.Duration) time.Duration { return 40*time.Second + 2*period }

// shortWait is the wait of a host that reaches no port of its peers, where it
// reached two before. Nobody blocks taintlet's port then, host by host. What is
// left is a fault of all at once: each host suspects itself at most a period and
// some moments after the first. And hosts that lost power: a kubelet renews its
// Lease every 10 s, so that one which was not renewed within 11 s tells.
func shortWait(period time.Duration) time.Duration { return 7*time.Second + max(period, 5*time.Second) }

// stage is how far a suspicion has come.
type stage int8

const (
	calm    stage = iota
	suspect       // nobody was asked about yet, or what they said was not clear
	many          // the others are not better
	accused       // the others are well
)

// suspicion is what a host that does not reach its peers thinks of itself.
type suspicion struct {
	wait, shortWait time.Duration
	random          *rand.Rand

	stage stage
	// due is when to ask, again. isShort: that is after the short wait; the long
	// one ends at long.
	due, long time.Time
	isShort   bool
	// silent: the API server did not answer in the round before.
	silent bool
	// note has the Nodes whose Leases are to be noted after this round, noted those
	// of the short wait.
	note, noted []string
	// ask has the Nodes whose Standings are awaited, since askedAt.
	ask     []string
	askedAt time.Time
	found   string // what the last answer showed, for people
}

// jittered adds some jitter.
func (s *suspicion) jittered(d, most time.Duration) time.Duration {
	return d + time.Duration(s.random.Int64N(int64(most)))
}

// begin makes the host suspect itself. It asks nothing before the others had their
// time.
func (s *suspicion) begin(r *Round) {
	s.end()
	s.stage, s.long = suspect, r.At.Add(s.jittered(s.wait, suspicionJitter))
	s.due = s.long
	if !s.silent && portsTell(r.Peers) {
		s.isShort, s.due = true, r.At.Add(s.jittered(s.shortWait, shortJitter))
		s.noted = s.draw(r.Peers, askSome)
		s.note = s.noted
	}
}

func (s *suspicion) end() {
	s.stage, s.isShort, s.note, s.noted, s.ask, s.found = calm, false, nil, nil, nil, ""
}

// portsTell reports whether enough of the peers that are not reached had a second
// port that answered. It does not now, so it is not only our port.
func portsTell(peers []PeerResult) bool {
	gone, tell := 0, 0
	for i := range peers {
		if !peers[i].isThere() {
			gone++
			if peers[i].OtherKnown {
				tell++
			}
		}
	}
	return tell >= fewestPeers && 2*tell >= gone
}

// next takes in a round. low: few peers have been reached for some rounds. said:
// the API server answers, so that what hosts say of themselves can be written
// and read. While it does not, every wait begins anew.
func (s *suspicion) next(r *Round, low, said bool) {
	s.note = nil
	wasSilent := s.silent
	s.silent = !said
	switch {
	case !low:
		s.end()
		return
	case s.stage == calm, wasSilent, s.silent:
		s.begin(r)
		return
	}
	if s.ask != nil && r.At.Sub(s.askedAt) >= askPatience {
		s.ask = nil
	}
	if s.ask == nil && !r.At.Before(s.due) {
		s.ask, s.askedAt = s.whom(r.Peers), r.At
	}
}

// whom chooses whom to ask about. After the short wait these are all that are not
// reached: of a fault that reaches all within half a minute, few may have it yet.
func (s *suspicion) whom(peers []PeerResult) []string {
	if s.isShort {
		return s.draw(peers, len(peers))
	}
	return s.draw(peers, askSome)
}

// draw chooses some of the peers that are not reached.
func (s *suspicion) draw(peers []PeerResult, most int) []string {
	var nodes []string
	for _, p := range peers {
		if !p.isThere() {
			nodes = append(nodes, p.Node)
		}
	}
	s.random.Shuffle(len(nodes), func(i, k int) { nodes[i], nodes[k] = nodes[k], nodes[i] })
	return nodes[:min(most, len(nodes))]
}

// answered takes in what the Nodes that were asked about say of themselves. After
// the short wait the others may not have had the time to suspect themselves, so
// that none of them may, and of those whose Leases were noted more than half must be
// known to be there. Otherwise the host waits on.
func (s *suspicion) answered(r *Round) {
	asked := len(s.ask)
	if asked == 0 {
		return
	}
	count, well, there := 0, 0, 0
	for _, standing := range r.Standings {
		if !slices.Contains(s.ask, standing.Node) || standing.Excused {
			continue
		}
		count++
		if !standing.Suspects {
			well++
		}
		if standing.LeaseKnown {
			there++
		}
	}
	wasShort := s.isShort
	s.ask, s.isShort = nil, false
	// Of those that were not asked about, as many are gone or excused.
	reached, all := reachOf(r.Peers)
	live := float64(reached) + float64(all-reached)*float64(count)/float64(asked)
	isFew := count >= fewestPeers && 2*well > count && float64(100*reached) <= lowPercent*live
	if wasShort && (!isFew || well < count || there < fewestPeers || 2*there <= len(s.noted)) {
		s.due = s.long
		return
	}
	s.due = r.At.Add(s.jittered(askAgain, suspicionJitter))
	s.found = fmt.Sprintf("%d of %d others are well", well, count)
	s.stage = many
	if isFew {
		s.stage = accused
	}
}
