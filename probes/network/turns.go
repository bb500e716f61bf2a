package network

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// quietRounds without trouble or news must pass before less is asked: as many as
// the verdict looks back.
const quietRounds = streakOf

const (
	// fewPeers are asked in a round in which nothing is new, per fewIn of the
	// period: twelve peers within 20 s, and some 36 connections in a minute. The
	// verdict on loss needs 20.
	fewPeers = 3
	fewIn    = 5 * time.Second
)

// Turns chooses whom of its peers a host asks in a round. To be asked wakes a
// host, and so does each answer; this is most of what the checks of the network
// cost. So while nothing is new, a round asks few peers, in turn. As soon as one
// of them has news, the same round asks the others too, and so does each round
// until nothing was new for some time. So the verdict on trouble never rests on
// few peers.
type Turns struct {
	few   int
	last  map[Peer]turn
	round int
	// isNew: the newest round had news. quiet counts the rounds since there were.
	isNew bool
	quiet int
}

// turn is what a peer was found to be when it was asked most recently.
type turn struct {
	// round in which it was asked; 0: never.
	round int
	// reached: it was, since it was chosen. One that never was may be closed to us.
	reached bool
	result  PeerResult
}

// NewTurns returns Turns for rounds that come each period.
func NewTurns(period time.Duration) *Turns {
	return &Turns{few: max(fewPeers, int((fewPeers*period+fewIn-1)/fewIn)), last: map[Peer]turn{}}
}

// Choose begins a round. It returns the peers to ask now, and the rest: to be
// asked in this round too as soon as one of the first has news. alert: something
// is wrong on this host, so that all are asked. Other peers are forgotten.
func (t *Turns) Choose(peers []Peer, alert bool) (now, rest []Peer) {
	known := make(map[Peer]turn, len(peers))
	for _, p := range peers {
		known[p] = t.last[p]
	}
	t.last = known
	t.quiet++
	if t.isNew || alert {
		t.quiet = 0
	}
	t.isNew = false
	t.round++
	if len(peers) <= t.few || t.quiet < quietRounds {
		return peers, nil
	}
	inTurn := slices.Clone(peers)
	slices.SortStableFunc(inTurn, func(a, b Peer) int {
		return cmp.Compare(t.last[a].round, t.last[b].round)
	})
	return inTurn[:t.few], inTurn[t.few:]
}

// IsNews reports whether a peer's result asks for more: it is not quite well, or
// says something else than before, or is a new one. It may be called from several
// goroutines, between Choose and Take.
func (t *Turns) IsNews(p Peer, now PeerResult) bool {
	return !now.Reached || now.Retransmits > 0 || !saysTheSame(t.last[p].result.Answer, now.Answer)
}

// saysTheSame compares what others act upon at once. The rest of an answer counts
// only on a host that has trouble, and that asks all.
func saysTheSame(a, b *Answer) bool {
	if a == nil || b == nil {
		return a == b
	}
	return maps.Equal(a.Levels, b.Levels) && maps.Equal(a.Classes, b.Classes)
}

// Take keeps the result of a peer that was asked in this round.
func (t *Turns) Take(p Peer, result PeerResult) {
	t.isNew = t.isNew || t.IsNews(p, result)
	before := t.last[p]
	t.last[p] = turn{t.round, before.reached || result.Reached, result}
}

// Results returns what is known of those peers that were reached since they were
// chosen.
func (t *Turns) Results(peers []Peer) (all []PeerResult) {
	for _, p := range peers {
		if last := t.last[p]; last.reached {
			last.result.Carried = last.round != t.round
			all = append(all, last.result)
		}
	}
	return all
}
