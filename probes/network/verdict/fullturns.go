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

// Passage is how an exchange of full packets with a peer ended.
type Passage int8

const (
	// NotTried says that none was made, or that the peer's agent does not know of it.
	NotTried Passage = iota
	// Passed says that a full packet got there and a full one came back.
	Passed
	// Lost says that none came back, and that one of small packets with the same peer worked.
	Lost
)

// fullTurn is what the newest exchange of full packets with a peer was.
type fullTurn struct {
	// round of it; 0: none was made yet.
	round   int
	passage Passage
	// passed: one did, since the peer was chosen. Where none ever did, it may be meant so.
	passed bool
}

// fullTurns says with whom full packets are exchanged.
type fullTurns struct {
	// every is in rounds. In round due one peer is asked: now, in this round.
	every, due int
	now        Peer
	// times counts the rounds in which one was.
	times int
	// isAll: with all peers in this round. isNext: with all in the next one.
	isAll, isNext bool
}

// chooseFull chooses the one of those that are asked in this round with whom full packets
// were exchanged longest ago, where it is time. The time varies by a round: otherwise the
// turns of some peers and the time would never meet.
func (t *Turns) chooseFull(asked []Peer) {
	if t.full.now = (Peer{}); t.round < t.full.due || len(asked) == 0 {
		return
	}
	t.full.now = slices.MinFunc(asked, func(a, b Peer) int { return cmp.Compare(t.last[a].full.round, t.last[b].full.round) })
	t.full.times++
	t.full.due = t.round + t.full.every + t.full.times%3 - 1
}

// IsFull reports whether full packets are exchanged with a peer in this round: in its turn,
// after a loss, and once with each that was reached.
func (t *Turns) IsFull(p Peer) bool {
	last := t.last[p]
	return last.reached && (t.full.isAll || p == t.full.now || last.full.round == 0)
}

// takeFull takes in how such an exchange ended, and what the peer said before. A loss that is
// new makes all peers be asked in the next round, and so do many losses, and a peer that
// has begun to lose.
func (t *Turns) takeFull(last fullTurn, before *Answer, result PeerResult) fullTurn {
	if losesFull(result.Answer) && !losesFull(before) {
		t.full.isNext = true
	}
	if !result.FullNow {
		return last
	}
	if over := result.FullBytes - 1; over >= fullBytes {
		t.full.due = max(t.full.due, t.round+t.full.every*(1+over/fullBytes))
	}
	was := last.passage
	last.round, last.passage, last.passed = t.round, result.Full, last.passed || result.Full == Passed
	if result.Full == Lost && !last.passed {
		last.passage = NotTried
	}
	if last.passage == Lost && (was != Lost || t.full.isAll && t.losesToMany()) {
		t.full.isNext = true
	}
	return last
}

// losesFull reports whether a peer says that it loses full packets.
func losesFull(a *Answer) bool { return a != nil && a.Full != nil && *a.Full < 0 }

// losesToMany reports whether full packets are lost on the way to many peers.
func (t *Turns) losesToMany() bool {
	lost, tried := 0, 0
	for _, last := range t.last {
		if last.full.passage != NotTried {
			tried++
		}
		if last.full.passage == Lost {
			lost++
		}
	}
	return isHole(lost, tried)
}

// isHole reports whether so many losses of full packets show a hole here and not at the
// peers.
func isHole(lost, tried int) bool { return lost >= fewestPeers && 2*lost >= tried }
