package decide

import (
	"fmt"
	"time"
)

const (
	// cautiousFor is how long after a start, or after a change of the
	// configuration, the brake is cautious. The peers may have the same wrong
	// threshold and not have said so yet. So a new Degraded first waits for news of
	// them, and a smaller share brakes: a sample of 12 may have fewer than half of
	// what more than half of the fleet has.
	cautiousFor = 5 * time.Minute
	// cautiousNum and cautiousDen are the part of the share that brakes then.
	cautiousNum, cautiousDen = 2, 3
	// roundsToHear is how many rounds that wait lasts. The first one may have begun
	// before this host told its peers; the second one did not. So of two hosts
	// that ask each other, at least one hears of the other.
	roundsToHear = 2
	// hearWithin bounds the wait where no round comes.
	hearWithin = 30 * time.Second
)

// isBraked reports whether a new Degraded has to wait, because the peers have the
// same condition or were not heard yet. What half of a fleet has at the same time
// is more likely a wrong configuration than the hosts' trouble, and a fleet
// without room for new pods is worse than either. This host counts as one of the
// fleet: otherwise half of an even number would be tainted.
func (s *State) isBraked(t *turn, c *condition) bool {
	limit, peers := t.policy.FleetBrake, t.in.Peers
	if limit.Percent == 0 {
		c.request = request{}
		return false
	}
	r := &c.request
	if r.since.IsZero() {
		r.since, r.round = t.now, peers.Rounds
	}
	percent, isCautious := limit.Percent, t.now.Sub(s.brake.since) < cautiousFor
	if isCautious {
		percent = percent * cautiousNum / cautiousDen
	}
	share := peers.Shares[c.name]
	if r.braked != "" && share.Asked < limit.MinPeers && (peers.Known < 0 || peers.Known >= limit.MinPeers) {
		// Whoever keeps the peers from answering must not end the brake.
		r.braked = fmt.Sprintf("held back by the fleet brake: half of the peers reported %s, and only %d answer now", c.name, share.Asked)
		return true
	}
	if share.Asked >= limit.MinPeers && 100*(share.Bad+1) >= percent*(share.Asked+1) {
		r.braked = fmt.Sprintf("held back by the fleet brake: %d of %d peers report %s", share.Bad, share.Asked, c.name)
		if !r.notified {
			r.notified = true
			t.notify(Notice{Kind: TaintBraked, Condition: c.name, Reason: string(TaintBraked), Message: fmt.Sprintf(
				"%s; %s. No taint follows until fewer do. Is the configuration right?", c.last.Message, r.braked)})
		}
		return true
	}
	r.braked = ""
	mayBeMany := peers.Known < 0 || peers.Known >= limit.MinPeers
	return mayBeMany && isCautious && peers.Rounds < r.round+roundsToHear &&
		t.now.Sub(r.since) < hearWithin
}
