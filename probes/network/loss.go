package network

import (
	"slices"
	"time"
)

// lossWindow is the time over which loss is counted, and leastConnections how
// many it takes: fewer say nothing about a share of 10 %.
const (
	lossWindow       = time.Minute
	leastConnections = 20
)

// loss counts the connections of the last minute and those of them on which
// segments were sent again.
type loss struct{ rounds []lossRound }

type lossRound struct {
	at          time.Time
	made, lossy int
}

func (l *loss) add(at time.Time, peers []PeerResult) {
	l.rounds = slices.DeleteFunc(l.rounds, func(r lossRound) bool { return at.Sub(r.at) >= lossWindow })
	r := lossRound{at: at}
	for _, peer := range peers {
		if !peer.Reached {
			continue
		}
		r.made++
		if peer.Retransmits > 0 {
			r.lossy++
		}
	}
	l.rounds = append(l.rounds, r)
}

// percent returns the share of lossy connections, -1 when too few were made.
func (l *loss) percent() int {
	made, lossy := 0, 0
	for _, r := range l.rounds {
		made, lossy = made+r.made, lossy+r.lossy
	}
	if made < leastConnections {
		return -1
	}
	return 100 * lossy / made
}
