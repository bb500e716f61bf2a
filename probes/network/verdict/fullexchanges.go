package verdict

import (
	"cmp"
	"slices"
	"time"
)

// fullEvery is how often one of the peers is asked with a request, and for an answer, of a
// full packet while all is well. Such an exchange has 2,500 bytes more than another. A host
// takes part in two of them in that time, its own and that of a peer, so they add 850 bytes
// to a round of 5,600.
const fullEvery = 30 * time.Second

// fullBytes is what one packet holds in most networks. Where packets are larger, full ones
// are sent less often in proportion, so that they cost as much.
const fullBytes = 1500

// fullExchange is what the newest exchange of full packets with a peer was.
type fullExchange struct {
	// round of it; 0: none was made yet.
	round   int
	passage Passage
	// passed: one did, since the peer was chosen. Where none ever did, it may be meant so.
	passed bool
}

// fullExchanges says with whom full packets are exchanged.
type fullExchanges struct {
	// every is in rounds. In round due one peer is asked: now, in this round.
	every, due int
	now        Peer
	// times counts the rounds in which one was.
	times int
	// isAll: with all peers in this round. isNext: with all in the next one.
	isAll, isNext bool
}

// choose chooses the one of those that are asked in this round with whom full packets
// were exchanged longest ago, where it is time. The time varies by a round: otherwise the
// turns of some peers and the time would never meet.
func (f *fullExchanges) choose(round int, asked []Peer, newest func(Peer) fullExchange) {
	if f.now = (Peer{}); round < f.due || len(asked) == 0 {
		return
	}
	f.now = slices.MinFunc(asked, func(a, b Peer) int { return cmp.Compare(newest(a).round, newest(b).round) })
	f.times++
	f.due = round + f.every + f.times%3 - 1
}

// take takes in how such an exchange ended, and what the peer said before. A loss that is
// new makes all peers be asked in the next round, and so do many losses, and a peer that
// has begun to lose.
func (f *fullExchanges) take(round int, last fullExchange, before *Answer, result PeerResult, losesToMany func() bool) fullExchange {
	if losesFull(result.Answer) && !losesFull(before) {
		f.isNext = true
	}
	if !result.FullNow {
		return last
	}
	if over := result.FullBytes - 1; over >= fullBytes {
		f.due = max(f.due, round+f.every*(1+over/fullBytes))
	}
	was := last.passage
	last.round, last.passage, last.passed = round, result.Full, last.passed || result.Full == Passed
	if result.Full == Lost && !last.passed {
		last.passage = NotTried
	}
	if last.passage == Lost && (was != Lost || f.isAll && losesToMany()) {
		f.isNext = true
	}
	return last
}

// losesFull reports whether a peer says that it loses full packets.
func losesFull(a *Answer) bool { return a != nil && a.Full != nil && *a.Full < 0 }

// isHole reports whether so many losses of full packets show a hole here and not at the
// peers.
func isHole(lost, tried int) bool { return lost >= fewestPeers && 2*lost >= tried }
