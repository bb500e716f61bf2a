package network

import (
	"fmt"
	"slices"
	"time"
)

// Loss is judged by connections that were made, over a minute. Those that were
// not made are the matter of reach. A round makes some 12 connections, so that a
// minute has some 144.
const (
	lossWindow = time.Minute
	// lossFewest connections say something.
	lossFewest = 20
	// lossShare of them, in percent, had retransmits: that is loss.
	lossShare = 10
	// lossEasier is the share below which there is none: the easier threshold.
	lossEasier = 7
	// lossApart: the peers' own median must be so many times lower.
	lossApart = 3
)

// connection is one that was made to a peer.
type connection struct {
	at            time.Time
	node          string
	retransmitted bool
}

// hearsay is what a peer said of itself.
type hearsay struct {
	at    time.Time
	lossy int
}

// loss counts connections with retransmits over the last minute.
type loss struct {
	connections []connection
	peers       map[string]hearsay
	// What these say, as of the newest round.
	share, median int // in percent; median -1: no peer knows
	made, hit     int
	peersMade     int // peers that connections were made to
	peersHit      int // those with retransmits
	peersThatKnow int
}

// add takes in a round.
func (l *loss) add(r *Round) {
	before := r.At.Add(-lossWindow)
	l.connections = slices.DeleteFunc(l.connections, func(c connection) bool { return !c.at.After(before) })
	for node, said := range l.peers {
		if !said.at.After(before) {
			delete(l.peers, node)
		}
	}
	for _, p := range r.Peers {
		if !p.Reached {
			continue
		}
		l.connections = append(l.connections, connection{r.At, p.Node, p.Retransmits > 0})
		if p.Answer != nil && p.Answer.Lossy >= 0 {
			if l.peers == nil {
				l.peers = map[string]hearsay{}
			}
			l.peers[p.Node] = hearsay{r.At, p.Answer.Lossy}
		}
	}
	l.count()
}

func (l *loss) count() {
	made, hit := map[string]bool{}, map[string]bool{}
	l.made, l.hit, l.share, l.median = len(l.connections), 0, 0, -1
	for _, c := range l.connections {
		made[c.node] = true
		if c.retransmitted {
			l.hit++
			hit[c.node] = true
		}
	}
	l.peersMade, l.peersHit, l.peersThatKnow = len(made), len(hit), len(l.peers)
	if l.made >= lossFewest {
		l.share = 100 * l.hit / l.made
	}
	if len(l.peers) > 0 {
		said := make([]int, 0, len(l.peers))
		for _, p := range l.peers {
			said = append(said, p.lossy)
		}
		slices.Sort(said)
		l.median = said[len(said)/2]
	}
}

// isOwn reports whether the loss is spread over the peers. Loss that few of them
// have is theirs.
func (l *loss) isOwn() bool { return l.peersMade >= 2 && 2*l.peersHit >= l.peersMade }

// isLess reports whether the peers see less. Where none knows, nobody is excused
// and nobody accused.
func (l *loss) isLess() bool { return l.median >= 0 && lossApart*l.median <= l.share }

// said is what peers are told: the share in percent, -1 when too few connections
// were made.
func (l *loss) said() int {
	if l.made < lossFewest {
		return -1
	}
	return l.share
}

// severity is 50 at the threshold.
func (l *loss) severity() int {
	if l.share < lossShare || !l.isOwn() || !l.isLess() {
		return min(49, 50*l.share/lossShare)
	}
	return 50 + 50*(l.share-lossShare)/(100-lossShare)
}

// String says what was found, for people.
func (l *loss) String() string {
	text := fmt.Sprintf("%d of %d connections of the last minute had retransmits (%d %%), to %d of %d peers; threshold %d %%",
		l.hit, l.made, l.share, l.peersHit, l.peersMade, lossShare)
	if l.median < 0 {
		return text + "; no peer knows its own"
	}
	return fmt.Sprintf("%s; median of %d peers %d %%", text, l.peersThatKnow, l.median)
}
