package verdict

import (
	"fmt"
	"slices"
	"time"
)

// Loss is judged by connections that were made, over a minute. Those that were
// not made are the matter of reach. A minute has some 36 connections while all is
// well, and some 144 from the first retransmit on (see Turns).
const (
	lossWindow = time.Minute
	// hearsayLasts is how long what a peer said of itself counts.
	hearsayLasts = 30 * time.Second
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
	at          time.Time
	lossy       int
	maintenance bool
}

// isBetter reports whether the peer says that it loses less than this share. One under
// maintenance does not say so: that would accuse this host.
func (h hearsay) isBetter(share int) bool { return h.lossy < max(share, 1) && !h.maintenance }

// loss counts connections with retransmits over the last minute.
type loss struct {
	// dwell is how long peers must see less.
	dwell time.Duration

	connections []connection
	peers       map[string]hearsay
	// What these say, as of the newest round. all: whatever the peers say of
	// themselves. own: without the peers that say nothing, or that they lose as
	// much as all of these; their loss may be theirs.
	all, own tally
	// apart: this host loses packets and its peers do not.
	apart streak
	// median is what peers say, in percent, -1: none knows.
	median int
}

// tally counts connections, and those with retransmits.
type tally struct {
	made, hit           int
	peersMade, peersHit int
}

// tallied counts the connections to the peers that count.
func (l *loss) tallied(counts func(node string) bool) (t tally) {
	made, hit := map[string]bool{}, map[string]bool{}
	for _, c := range l.connections {
		if !counts(c.node) {
			continue
		}
		t.made++
		made[c.node] = true
		if c.retransmitted {
			t.hit++
			hit[c.node] = true
		}
	}
	t.peersMade, t.peersHit = len(made), len(hit)
	return t
}

// share is in percent, 0 when too few connections were made.
func (t tally) share() int {
	if t.made < lossFewest {
		return 0
	}
	return 100 * t.hit / t.made
}

// add takes in a round.
func (l *loss) add(r *Round) {
	before := r.At.Add(-lossWindow)
	l.connections = slices.DeleteFunc(l.connections, func(c connection) bool { return !c.at.After(before) })
	for node, heard := range l.peers {
		if r.At.Sub(heard.at) >= hearsayLasts {
			delete(l.peers, node)
		}
	}
	for _, p := range r.Peers {
		if !p.Reached || p.Carried {
			continue
		}
		l.connections = append(l.connections, connection{r.At, p.Node, p.Retransmits > 0})
		if p.Answer != nil && p.Answer.Lossy >= 0 {
			if l.peers == nil {
				l.peers = map[string]hearsay{}
			}
			l.peers[p.Node] = hearsay{r.At, p.Answer.Lossy, p.Answer.Maintenance}
		}
	}
	l.count()
	l.apart.add(l.isApart(), r.At)
}

func (l *loss) count() {
	l.all = l.tallied(func(string) bool { return true })
	share := l.all.share()
	l.own = l.tallied(func(node string) bool {
		heard, ok := l.peers[node]
		return ok && heard.isBetter(share)
	})
	l.median = -1
	shares := make([]int, 0, len(l.peers))
	for _, p := range l.peers {
		if !p.maintenance || p.lossy >= max(share, 1) {
			shares = append(shares, p.lossy)
		}
	}
	if len(shares) > 0 {
		slices.Sort(shares)
		l.median = shares[len(shares)/2]
	}
}

// shows reports whether this host sees loss, spread over the peers. Loss that few
// of them have is theirs.
func (l *loss) shows(percent int) bool {
	return l.all.share() >= percent && l.all.peersMade >= fewestPeers && 2*l.all.peersHit >= l.all.peersMade
}

// isApart reports whether this host loses packets and its peers do not: neither
// among those that say they lose less than this host, nor by their median.
func (l *loss) isApart() bool {
	return l.shows(lossShare) && l.own.share() >= lossShare && l.own.peersMade >= fewestPeers &&
		2*l.own.peersHit >= l.own.peersMade && l.median >= 0 && lossApart*l.median <= l.own.share()
}

// accuses reports whether this host loses packets and its peers do not, and have
// not for as long as they need to see a fault of all.
func (l *loss) accuses(now time.Time) bool { return l.apart.now() && l.apart.holds(l.dwell, now) }

// published is the share that peers read, in percent, -1 when too few connections
// were made.
func (l *loss) published() int {
	if l.all.made < lossFewest {
		return -1
	}
	return l.all.share()
}

// severity is 50 at the threshold.
func (l *loss) severity(now time.Time) int {
	if !l.accuses(now) {
		return min(49, 50*l.all.share()/lossShare)
	}
	return 50 + 50*(l.all.share()-lossShare)/(100-lossShare)
}

// String says what was found, for people.
func (l *loss) String() string {
	text := fmt.Sprintf("%d of %d connections of the last minute had retransmits (%d %%), to %d of %d peers; threshold %d %%",
		l.all.hit, l.all.made, l.all.share(), l.all.peersHit, l.all.peersMade, lossShare)
	if l.median < 0 {
		return text + "; no peer knows its own"
	}
	return fmt.Sprintf("%s; median of %d peers %d %%", text, len(l.peers), l.median)
}
