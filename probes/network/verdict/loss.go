package verdict

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Loss is judged by connections that were made, over half a minute. Those that were
// not made are the matter of reach. Half a minute has some 18 connections while all is
// well, and some 90 from the first retransmit on (see Rotation).
const (
	lossWindow = 30 * time.Second
	// lossFresh is how long what a peer said of itself is new: two rounds. It counts for the
	// window.
	lossFresh = 10 * time.Second
	// lossFewest connections say something.
	lossFewest = 15
	// lossNewest connections show that packets are lost now, as soon as two of them had
	// retransmits.
	lossNewest = 12
	// lossPressed is how long rounds then follow as soon as may be, at most once in
	// lossPressedAgain: the window soon has enough of them.
	lossPressed, lossPressedAgain = 10 * time.Second, time.Minute
	// lossShare of them, in percent, had retransmits: that is loss.
	lossShare = 10
	// lossAloneShare of them proves it in the short time. Of a host that loses 1 % of its
	// packets each way, 4 % of the connections have retransmits, and 10 % now and then.
	lossAloneShare = 15
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

// loss counts connections with retransmits over the last half minute.
type loss struct {
	compared

	connections []connection
	// first is when one was made for the first time.
	first time.Time
	peers map[string]hearsay
	// What these say, as of the newest round. all: whatever the peers say of
	// themselves. own: without the peers that say nothing, or that they lose as
	// much as all of these; their loss may be theirs.
	all, own tally
	// isMeasured: enough connections were made since the start to tell, or with few peers all
	// of half a minute had no retransmits.
	isMeasured bool
	// pressed is when more evidence was wanted at once, isPressing that it is.
	pressed    time.Time
	isPressing bool
	// median is what peers say, in percent, -1: none knows. most is the most that one says.
	median, most int
}

// tally counts connections, and those with retransmits.
type tally struct {
	made, hit           int
	peersMade, peersHit int
}

// tallied counts the connections to the peers that count.
func (l *loss) tallied(counts func(node string) bool) (t tally) {
	hit := map[string]bool{} // by peers
	for _, c := range l.connections {
		if !counts(c.node) {
			continue
		}
		t.made++
		if c.retransmitted {
			t.hit++
		}
		hit[c.node] = hit[c.node] || c.retransmitted
	}
	for _, isHit := range hit {
		t.peersMade++
		if isHit {
			t.peersHit++
		}
	}
	return t
}

// share is in percent, 0 when too few connections were made.
func (t tally) share() int {
	if t.made < lossFewest {
		return 0
	}
	return 100 * t.hit / t.made
}

// shows reports whether these are so much loss, spread over the peers. Loss that few of them
// have is theirs.
func (t tally) shows(percent int) bool {
	return t.share() >= percent && t.peersMade >= fewestPeers && 2*t.peersHit >= t.peersMade
}

// add takes in a round.
func (l *loss) add(r *Round) {
	l.connections = slices.DeleteFunc(l.connections, func(c connection) bool { return r.At.Sub(c.at) >= lossWindow })
	maps.DeleteFunc(l.peers, func(_ string, heard hearsay) bool { return r.At.Sub(heard.at) >= lossWindow })
	for i := range r.Peers {
		l.takePeer(&r.Peers[i], r.At)
	}
	l.count()
	if l.first.IsZero() && len(l.connections) > 0 {
		l.first = r.At
	}
	l.isMeasured = l.isMeasured || l.all.made >= lossFewest || l.all.hit == 0 && !l.first.IsZero() && r.At.Sub(l.first) >= lossWindow
	// More evidence is wanted at once if packets are lost now, and the window does not show yet
	// how many.
	wants := l.newly() > 0 && !l.all.shows(lossShare)
	if wants && r.At.Sub(l.pressed) >= lossPressedAgain {
		l.pressed = r.At
	}
	l.isPressing = wants && r.At.Sub(l.pressed) < lossPressed
	l.take(l.all.shows(lossShare), l.isApart(), l.isAlone(r), r.At)
}

// isAlone reports whether half of the peers said a moment ago what they lose, and none of all
// that did loses half as much as this host.
func (l *loss) isAlone(r *Round) bool {
	newly := 0
	for _, heard := range l.peers {
		if r.At.Sub(heard.at) < lossFresh {
			newly++
		}
	}
	return l.own.share() >= lossAloneShare && 2*newly >= len(r.Peers) && 2*l.most <= l.own.share()
}

// isApart reports whether this host loses more than its peers: among those that say that they
// lose less, and than their median.
func (l *loss) isApart() bool {
	return l.own.shows(lossShare) && l.median >= 0 && lossApart*l.median <= l.own.share()
}

// takePeer takes in the connections to a peer, by each of its addresses, and what it says.
func (l *loss) takePeer(p *PeerResult, at time.Time) {
	for one := p; one != nil; one = one.Also {
		if one.Reached && !one.Carried {
			l.connections = append(l.connections, connection{at, p.Node, one.Retransmits > 0})
		}
	}
	if p.Reached && !p.Carried && p.Answer != nil && p.Answer.Lossy >= 0 {
		l.peers[p.Node] = hearsay{at, p.Answer.Lossy, p.Answer.Maintenance}
	}
}

// count counts the connections, and what the peers say. One under maintenance that loses less does
// not count.
func (l *loss) count() {
	l.all = l.tallied(func(string) bool { return true })
	share := l.all.share()
	l.own = l.tallied(func(node string) bool {
		heard, ok := l.peers[node]
		return ok && heard.isBetter(share)
	})
	l.median, l.most = -1, -1
	var shares []int
	for _, p := range l.peers {
		if !p.maintenance || p.lossy >= max(share, 1) {
			shares = append(shares, p.lossy)
		}
	}
	if len(shares) > 0 {
		slices.Sort(shares)
		l.median, l.most = shares[len(shares)/2], shares[len(shares)-1]
	}
}

// due is when a round may show that this host alone loses packets; zero: none does soon.
func (l *loss) due(r *Round) time.Time {
	if l.isPressing {
		return r.At
	}
	return l.compared.due(r)
}

// published is the share that peers read, in percent, -1 when too few connections
// were made. It may excuse them, so that of a fault of all it has to rise at once: it is
// that of the newest connections if that is greater.
func (l *loss) published() int {
	if l.all.made < lossFewest {
		return -1
	}
	return max(l.all.share(), l.newly())
}

// newly is the share of the newest connections, in percent; 0 if fewer than two of them had
// retransmits.
func (l *loss) newly() int {
	hit := 0
	newest := l.connections[len(l.connections)-min(lossNewest, len(l.connections)):]
	for _, c := range newest {
		if c.retransmitted {
			hit++
		}
	}
	if hit < 2 {
		return 0
	}
	return 100 * hit / len(newest)
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
	text := fmt.Sprintf("%d of %d connections of the last 30 s had retransmits (%d %%), to %d of %d peers; threshold %d %%",
		l.all.hit, l.all.made, l.all.share(), l.all.peersHit, l.all.peersMade, lossShare)
	if l.median < 0 {
		return text + "; no peer knows its own"
	}
	return fmt.Sprintf("%s; median of %d peers %d %%", text, len(l.peers), l.median)
}
