package verdict

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	// lossWindow is how long connections count. It holds 18 of them while the host is healthy, and
	// 90 after a retransmit.
	lossWindow = 30 * time.Second
	// lossFresh is how long what a peer said of itself is new: two rounds. It counts for the window.
	lossFresh = 10 * time.Second
	// lossFewest connections say something.
	lossFewest = 15
	// lossNewest connections show that packets are lost now, once two of them had retransmits.
	lossNewest = 12
	// lossPressed is how long rounds then follow as soon as may be, at most once in
	// lossPressedAgain: the window soon has enough of them.
	lossPressed, lossPressedAgain = 10 * time.Second, time.Minute
	// lossShare of them, in percent, had retransmits: that is loss. Below lossEasier there is none.
	lossShare, lossEasier = 10, 7
	// lossAloneShare of them proves it in the short time. Of a host that loses 1 % of its
	// packets each way, 4 % of the connections have retransmits, and 10 % now and then.
	lossAloneShare = 15
	// lossApart: the peers' own median must be lower by this factor.
	lossApart = 3
)

// connection is one connection that was made to a peer.
type connection struct {
	at            time.Time
	node          string
	retransmitted bool
}

// hearsay is what a peer said of itself.
type hearsay struct {
	at time.Time
	*Answer
}

// loss counts connections with retransmits over the last half minute.
type loss struct {
	compared

	connections []connection
	peers       map[string]hearsay
	// The counts over these connections. all: to all peers. own: without peers that do not report
	// their loss or lose as much as this host, because that loss may be theirs.
	all, own tally
	// isMeasured: enough connections were made since the start to tell, or with few peers all
	// of half a minute had no retransmits.
	isMeasured bool
	// pressed is when more evidence was wanted at once.
	pressed time.Time
	// median is what peers say, in percent, -1: none knows. most is the most that one says.
	median, most int
}

// tally counts connections, and those with retransmits.
type tally struct {
	made, hit           int
	peersMade, peersHit int
}

// tallied counts those of the connections that were made to these peers; nil: all.
func tallied(connections []connection, peers map[string]bool) (t tally) {
	hit := map[string]bool{} // by peers
	for _, c := range connections {
		if peers != nil && !peers[c.node] {
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

// shows reports whether these are so much loss, spread over the peers. Loss of few of them is theirs.
func (t tally) shows(percent int) bool {
	return t.share() >= percent && t.peersMade >= fewestPeers && 2*t.peersHit >= t.peersMade
}

// add takes in a round.
func (l *loss) add(r *Round) {
	before := len(l.connections)
	l.connections = slices.DeleteFunc(l.connections, func(c connection) bool { return r.At.Sub(c.at) >= lossWindow })
	isFull := len(l.connections) < before // the window
	maps.DeleteFunc(l.peers, func(_ string, heard hearsay) bool { return r.At.Sub(heard.at) >= lossWindow })
	for i := range r.Peers {
		l.takePeer(&r.Peers[i], r.At)
	}
	l.count()
	l.isMeasured = l.isMeasured || l.all.made >= lossFewest || l.all.hit == 0 && isFull
	l.isUntried = !l.isMeasured && len(r.Peers) >= fewestPeers
	// More evidence is wanted if packets are lost now, and the window does not show yet how many.
	wants := l.newly() > 0 && !l.all.shows(lossShare)
	if wants && r.At.Sub(l.pressed) >= lossPressedAgain {
		l.pressed = r.At
	}
	l.isPressing = wants && r.At.Sub(l.pressed) < lossPressed
	l.take(l.all.shows(lossShare), l.isApart(), l.isAlone(r), r.At)
	l.isNear = l.all.shows(lossEasier)
}

// isApart reports whether this host loses more than the peers that lose less, and than their median.
func (l *loss) isApart() bool {
	return l.own.shows(lossShare) && l.median >= 0 && lossApart*l.median <= l.own.share()
}

// isAlone reports whether half of the peers said lately what they lose, and none half as much as this host.
func (l *loss) isAlone(r *Round) bool {
	newly := 0
	for _, heard := range l.peers {
		if r.At.Sub(heard.at) < lossFresh {
			newly++
		}
	}
	return l.own.share() >= lossAloneShare && 2*newly >= len(r.Peers) && 2*l.most <= l.own.share()
}

// takePeer takes in the connections to a peer, by each of its addresses, and what it says.
func (l *loss) takePeer(p *PeerResult, at time.Time) {
	for one := p; one != nil; one = one.Also {
		if one.Reached && !one.Carried {
			l.connections = append(l.connections, connection{at, p.Node, one.Retransmits > 0})
		}
	}
	if p.Reached && !p.Carried && p.Answer != nil && p.Answer.Lossy >= 0 {
		l.peers[p.Node] = hearsay{at, p.Answer}
	}
}

// count counts the connections and the peers' reports. A peer under maintenance that loses less
// does not count, because it must not be a witness against this host.
func (l *loss) count() {
	l.all = tallied(l.connections, nil)
	better := map[string]bool{}
	var shares []int
	for node, p := range l.peers {
		isBetter := p.Lossy < max(l.all.share(), 1)
		better[node] = isBetter && !p.Maintenance
		if !isBetter || !p.Maintenance {
			shares = append(shares, p.Lossy)
		}
	}
	l.own, l.median, l.most = tallied(l.connections, better), -1, -1
	if len(shares) > 0 {
		slices.Sort(shares)
		l.median, l.most = shares[len(shares)/2], shares[len(shares)-1]
	}
}

// published is the share of loss that peers read, in percent, or -1 after too few connections. It
// can prevent taints at the peers, so during a fault of the whole fleet it must rise immediately:
// it is the share of the newest connections if that is greater.
func (l *loss) published() int {
	if l.all.made < lossFewest {
		return -1
	}
	return max(l.all.share(), l.newly())
}

// newly is the share of the newest connections, in percent; 0 if fewer than two had retransmits.
func (l *loss) newly() int {
	newest := tallied(l.connections[max(0, len(l.connections)-lossNewest):], nil)
	if newest.hit < 2 {
		return 0
	}
	return 100 * newest.hit / newest.made
}

func (l *loss) String() string {
	text := fmt.Sprintf("%d of %d connections of the last 30 s had retransmits (%d %%), to %d of %d peers; threshold %d %%",
		l.all.hit, l.all.made, l.all.share(), l.all.peersHit, l.all.peersMade, lossShare)
	if l.median < 0 {
		return text + "; no peer knows its own"
	}
	return fmt.Sprintf("%s; median of %d peers %d %%", text, len(l.peers), l.median)
}
