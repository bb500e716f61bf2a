package verdict

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// quietRounds without trouble or changes must pass before less is asked: as many as the verdict looks back.
const quietRounds = streakOf

// IsLeftOut reports whether a class is checked only in every second round after this many healthy
// rounds.
func (c Class) IsLeftOut(calm int) bool {
	return (c == Self || c == Local) && calm >= quietRounds && calm%2 == 1
}

const (
	// fewPeers are queried in a round without changes, per fewIn of the period: twelve peers within
	// 20 s, and about 36 connections in a minute. The verdict on loss needs 20.
	fewPeers = 3
	fewIn    = 5 * time.Second

	// closedWait is the most between two attempts to reach a peer that was never reached.
	closedWait = 5 * time.Minute
	// closedAfter is for how long a peer may answer at its second port only, the kubelet's, which logs
	// each such connection. After that, the peer counts as never reached.
	closedAfter = 10 * time.Minute

	// fullEvery is the time between two exchanges of a full packet (request and answer) with one of
	// the peers while the host is healthy. Such an exchange has 2,500 bytes more than others, and a
	// host takes part in two of them in that time: 850 bytes more in a round of 5,600.
	fullEvery = 30 * time.Second
	// fullBytes is what one packet holds in most networks. Larger ones are sent less often in proportion.
	fullBytes = 1500
)

// Rotation chooses which peers a host queries in a round. Each query and each answer wakes a host,
// which is most of the cost of the network checks. So while nothing changes, a round queries few
// peers, in turn. As soon as one of them has changed, that round and the following ones query all
// peers, until nothing has changed for some time. A verdict of trouble never rests on few peers.
//
// A peer that was never reached does not count, and is not a change. It is queried less and less
// often.
type Rotation struct {
	period time.Duration
	few    int

	last  map[Peer]lastAsked
	round int
	// Suspected counts peers that were not asked yet as reached: the agent before this one did
	// reach them.
	Suspected bool
	// quiet counts the rounds since something changed.
	quiet int

	// In round fullDue, the fullTimes-th, full packets are exchanged with one peer: fullNow, in this round.
	fullDue, fullTimes int
	fullNow            Peer
	// fullAll: with all peers in this round. fullNext: with all in the next one.
	fullAll, fullNext bool
}

// lastAsked is what a peer was found to be when it was asked most recently.
type lastAsked struct {
	// round in which it was asked, and fullRound in which full packets were exchanged; 0: never.
	round, fullRound int
	// reached: the peer was reached since it was chosen. A firewall may block a peer that never
	// was. assumed: the previous agent of this host reached it, and this one has not yet.
	reached, assumed bool
	// passed: a full packet did, since it was chosen. Where none ever did, it may be meant so.
	passed bool
	// missed counts the attempts since it was reached. If it never was, it is asked again in round due.
	missed, due int
	result      PeerResult
}

// NewRotation returns a Rotation for rounds that come each period.
func NewRotation(period time.Duration) *Rotation {
	return &Rotation{period: period, few: max(fewPeers, int((fewPeers*period+fewIn-1)/fewIn)), last: map[Peer]lastAsked{}}
}

// rounds is how many come in a time.
func (t *Rotation) rounds(d time.Duration) int { return max(1, int(d/t.period)) }

// Forget resets all peers: none has been asked.
func (t *Rotation) Forget() {
	clear(t.last)
	t.quiet = 0
}

// Choose begins a round. It returns the peers to ask now, and the rest, which are asked in this
// round as soon as one of the first has changed. alert: this host has a fault, so all peers that
// are due are asked. Peers that are not in the list are forgotten.
func (t *Rotation) Choose(peers []Peer, alert bool) (now, rest []Peer) {
	known := make(map[Peer]lastAsked, len(peers))
	for _, p := range peers {
		last := t.last[p]
		if t.Suspected && last.round == 0 {
			last.reached, last.assumed = true, true
		}
		known[p] = last
	}
	t.last = known
	t.round++
	if t.quiet++; alert {
		t.quiet = 0
	}
	inTurn := slices.DeleteFunc(slices.Clone(peers), func(p Peer) bool {
		last := t.last[p]
		return !last.reached && t.round < last.due
	})
	t.fullAll, t.fullNext = t.fullNext, false
	few := len(inTurn)
	if t.quiet >= quietRounds && !t.fullAll {
		few = min(few, t.few)
		slices.SortStableFunc(inTurn, func(a, b Peer) int { return cmp.Compare(t.last[a].round, t.last[b].round) })
	}
	t.chooseFull(inTurn[:few])
	return inTurn[:few], inTurn[few:]
}

// chooseFull chooses the one with whom full packets were exchanged longest ago, where it is time. The time
// varies by a round: otherwise the turns of some peers and the time would never meet.
func (t *Rotation) chooseFull(asked []Peer) {
	if t.fullNow = (Peer{}); t.round < t.fullDue || len(asked) == 0 {
		return
	}
	t.fullNow = slices.MinFunc(asked, func(a, b Peer) int { return cmp.Compare(t.last[a].fullRound, t.last[b].fullRound) })
	t.fullTimes++
	t.fullDue = t.round + t.rounds(fullEvery) + t.fullTimes%3 - 1
}

// IsFull reports whether full packets go to a peer in this round: in its turn, after a loss, and once at first.
func (t *Rotation) IsFull(p Peer) bool {
	last := t.last[p]
	return last.reached && (t.fullAll || p == t.fullNow || last.fullRound == 0)
}

// HasChanged reports whether a peer's result is a reason to ask all peers: it is not quite healthy,
// or differs from the result before. A peer that is gone for long is no such reason.
func (t *Rotation) HasChanged(p Peer, now PeerResult) bool {
	last := t.last[p]
	if !now.Reached {
		return !last.isClosed() && (last.missed < quietRounds || now.ReachedOther)
	}
	return now.Retransmits > 0 || !saysTheSame(last.result.Answer, now.Answer)
}

// isClosed reports whether a peer was asked and never reached.
func (t lastAsked) isClosed() bool { return t.missed > 0 && !t.reached }

// saysTheSame compares what others act upon at once.
func saysTheSame(a, b *Answer) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Maintenance == b.Maintenance && maps.Equal(a.Levels, b.Levels) && maps.Equal(a.Classes, b.Classes)
}

// Take keeps the result of a peer that was asked in this round.
func (t *Rotation) Take(p Peer, result PeerResult) {
	last := t.last[p]
	if t.HasChanged(p, result) {
		t.quiet = -1 // 0 in the next round
	}
	if result.Reached && last.isClosed() { // its port was opened, and so may be those of others
		for other, closed := range t.last {
			closed.due = 0
			t.last[other] = closed
		}
	}
	t.takeFull(&last, &result)
	last.round, last.result = t.round, result
	if result.Reached {
		last.reached, last.assumed, last.missed = true, false, 0
	} else {
		last.missed++
	}
	if last.missed >= t.rounds(closedAfter) && result.ReachedOther || last.assumed && last.missed >= t.rounds(neverHolds) {
		last.reached, last.assumed = false, false
	}
	if last.isClosed() {
		last.due = t.round + t.wait(last.missed)
	}
	t.last[p] = last
}

// takeFull adds the result of an exchange of full packets, and the peer's report about its exchanges. All
// peers are queried in the next round after a new loss, while many lose packets, and when a peer begins to
// lose packets.
func (t *Rotation) takeFull(last *lastAsked, result *PeerResult) {
	if losesFull(result.Answer) && !losesFull(last.result.Answer) {
		t.fullNext = true
	}
	was := last.result.Full
	if !result.FullNow {
		result.Full = was
		return
	}
	if over := result.FullBytes - 1; over >= fullBytes {
		t.fullDue = max(t.fullDue, t.round+t.rounds(fullEvery)*(1+over/fullBytes))
	}
	last.fullRound, last.passed = t.round, last.passed || result.Full == Passed
	if result.Full == Lost && !last.passed {
		result.Full = NotTried
	}
	if result.Full == Lost && (was != Lost || t.fullAll && t.losesToMany()) {
		t.fullNext = true
	}
}

// losesFull reports whether a peer says that it loses full packets.
func losesFull(a *Answer) bool { return a != nil && a.Full < 0 }

// losesToMany reports whether full packets are lost on the way to many peers.
func (t *Rotation) losesToMany() bool {
	lost, passed := 0, 0
	for _, last := range t.last {
		switch last.result.Full {
		case Lost:
			lost++
		case Passed:
			passed++
		}
	}
	return isHole(lost, lost+passed)
}

// wait is after how many rounds a peer is asked again that was missed so often. Attempts are spread.
func (t *Rotation) wait(missed int) int {
	wait := min(1<<min(missed-1, 30), t.rounds(closedWait))
	return wait/2 + 1 + rand.IntN(wait/2+1) //nolint:gosec // not a secret
}

// Last returns the newest result of a peer, and whether the peer was reached since it was chosen.
func (t *Rotation) Last(p Peer) (result PeerResult, reached bool) {
	return t.last[p].result, t.last[p].reached
}

// Results returns the newest results of the peers that were reached at some time, one for each
// Node.
func (t *Rotation) Results(peers []Peer) (all []PeerResult) {
	for i, p := range peers {
		last := t.last[p]
		if !last.reached {
			continue
		}
		last.result.Carried, last.result.FullNow = last.round != t.round, last.fullRound == t.round
		if isSecond(peers, i) && t.last[peers[i-1]].reached {
			all[len(all)-1] = joined(all[len(all)-1], last.result)
			continue
		}
		all = append(all, last.result)
	}
	return all
}

// joined returns what is known of a Node by IPv4 and by IPv6: the worse result, or else the newer one.
func joined(a, b PeerResult) PeerResult {
	worse, other := a, b
	if order := cmp.Compare(a.rank(), b.rank()); order > 0 || order == 0 && a.Carried && !b.Carried {
		worse, other = b, a
	}
	if worse.Answer == nil && worse.Carried == other.Carried || worse.Carried && !other.Carried && other.Answer != nil {
		worse.Answer = other.Answer
	}
	worse.Also = &other
	return worse
}

// rank is higher for a better result.
func (p *PeerResult) rank() int {
	switch {
	case !p.isThere():
		return 0
	case !p.Reached:
		return 1
	case p.Hangs || p.Full == Lost:
		return 2
	}
	return 3
}
