package verdict

import (
	"fmt"
	"testing"
)

// fullScript plays rounds to a Rotation of so many peers. It returns with whom full packets were
// exchanged, by round.
func fullScript(turns *Rotation, peers []Peer, rounds int, ends func(p Peer) Passage) (full [][]Peer) {
	for range rounds {
		var with []Peer
		now, _ := turns.Choose(peers, false)
		for _, p := range now {
			result := PeerResult{Node: p.Node, Reached: true, Answer: &Answer{}}
			if turns.IsFull(p) {
				with = append(with, p)
				result.Full, result.FullNow, result.FullBytes = ends(p), true, 1448
			}
			turns.Take(p, result)
		}
		full = append(full, with)
	}
	return full
}

func twelve() (peers []Peer) {
	for i := range 12 {
		peers = append(peers, Peer{Node: fmt.Sprint(i)})
	}
	return peers
}

func passes(Peer) Passage { return Passed }

// Each peer once after the start; then one every 30 s, all of them in turn.
func TestFullPacketsInTurn(t *testing.T) {
	t.Parallel()
	turns, peers := NewRotation(testPeriod), twelve()
	first := map[Peer]int{}
	for _, with := range fullScript(turns, peers, 8, passes) {
		for _, p := range with {
			first[p]++
		}
	}
	if len(first) != 12 {
		t.Errorf("after the start: %v", first)
	}
	const hour = 12 * 60
	seen, all := map[Peer]int{}, 0
	for _, with := range fullScript(turns, peers, hour, passes) {
		if len(with) > 1 {
			t.Errorf("%d at the same time", len(with))
		}
		for _, p := range with {
			seen[p]++
			all++
		}
	}
	if all < 110 || all > 130 {
		t.Errorf("%d in an hour", all)
	}
	for _, p := range peers {
		if seen[p] < 5 || seen[p] > 15 {
			t.Errorf("%s %d times in an hour", p.Node, seen[p])
		}
	}
}

// After a loss all are tried in the next round; again and again while many lose.
func TestAllFullPacketsAfterALoss(t *testing.T) {
	t.Parallel()
	const rounds = 400
	for _, test := range []struct{ losing, least, most int }{{0, 0, 0}, {1, 1, 1}, {5, 2, 2}, {6, 200, rounds}, {12, 200, rounds}} {
		turns, peers := NewRotation(testPeriod), twelve()
		fullScript(turns, peers, 8, passes)
		all := 0
		for _, with := range fullScript(turns, peers, rounds, func(p Peer) Passage {
			for _, losing := range peers[:test.losing] {
				if p == losing {
					return Lost
				}
			}
			return Passed
		}) {
			if len(with) == 12 {
				all++
			}
		}
		if all < test.least || all > test.most {
			t.Errorf("%d lose: all are asked in %d of %d rounds", test.losing, all, rounds)
		}
	}
}

// A peer that never exchanged a full packet loses none: it may be meant so.
func TestFullPacketsThatNeverPassed(t *testing.T) {
	t.Parallel()
	turns, peers := NewRotation(testPeriod), twelve()
	fullScript(turns, peers, 40, func(Peer) Passage { return Lost })
	for _, p := range turns.Results(peers) {
		if p.Full != NotTried {
			t.Errorf("%+v", p)
		}
	}
	turns.Forget()
	for _, p := range peers {
		if turns.IsFull(p) {
			t.Errorf("%s is asked before it was reached", p.Node)
		}
	}
}

// Larger packets are exchanged less often, so that they cost as much.
func TestLargeFullPacketsAreRare(t *testing.T) {
	t.Parallel()
	turns, peers := NewRotation(testPeriod), twelve()
	fullScript(turns, peers, 8, passes)
	count := 0
	for range 72 {
		now, _ := turns.Choose(peers, false)
		for _, p := range now {
			result := PeerResult{Reached: true, Answer: &Answer{}}
			if turns.IsFull(p) {
				count++
				result.Full, result.FullNow, result.FullBytes = Passed, true, LongestPadded
			}
			turns.Take(p, result)
		}
	}
	if count < 3 || count > 5 {
		t.Errorf("%d in 6 minutes", count)
	}
}

// A peer that begins to say that it loses full packets makes all be tried, once.
func TestFullPacketsAfterAPeersWord(t *testing.T) {
	t.Parallel()
	turns, peers := NewRotation(testPeriod), twelve()
	fullScript(turns, peers, 8, passes)
	all := 0
	for range 40 {
		now, _ := turns.Choose(peers, false)
		if turns.fullAll {
			all++
		}
		for _, p := range now {
			result := PeerResult{Reached: true, Answer: &Answer{Full: 3}}
			if p == peers[4] {
				result.Answer.Full = lostHere
			}
			if turns.IsFull(p) {
				result.Full, result.FullNow, result.FullBytes = Passed, true, 1448
			}
			turns.Take(p, result)
		}
	}
	if all != 1 {
		t.Errorf("all were tried in %d rounds", all)
	}
}
