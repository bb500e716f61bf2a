package decide

import (
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
)

const (
	// cautiousFor is how long after a start, or after a change of the
	// configuration, the brake is cautious. The peers may have the same wrong
	// threshold and not have said so yet. So a new Degraded first waits for news of
	// them, and a smaller share brakes: a sample of 12 may have less of it than
	// the fleet.
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

// heldUnheard holds a new Degraded until the peers were heard. It lasts seconds and is not
// told.
const heldUnheard describe.Hold = "Unheard"

// brakeGate says whether a new Degraded has to wait, because the peers have the
// same condition or were not heard yet. What a large part of a fleet has at the
// same time is more likely a wrong configuration than the hosts' trouble, and a fleet
// without room for new pods is worse than either. So is a zone without room, where enough
// of its hosts are peers: autoscalers and volumes know zones. This host counts as one of the
// fleet: otherwise the share of the tainted hosts would be larger than that which brakes.
func (s *State) brakeGate(t *turn, c *condition) (describe.Hold, time.Time) {
	limit, peers, share := t.policy.FleetBrake, t.in.Peers, t.in.Peers.Shares[c.name]
	percent, isCautious := limit.Percent, t.now.Sub(s.ledger.policySince) < cautiousFor
	if isCautious {
		percent = percent * cautiousNum / cautiousDen
	}
	mayBeMany := peers.Known < 0 || peers.Known >= limit.MinPeers
	heard := c.onset.since.Add(hearWithin)
	switch {
	case limit.Percent == 0:
		return "", time.Time{}
	case c.onset.braked != "" && share.heard() < limit.MinPeers && mayBeMany:
		return describe.HeldFleetBrake, time.Time{} // whoever keeps the peers from answering must not end the brake
	case share.reaches(percent, limit.MinPeers), share.zone().reaches(percent, limit.MinPeers):
		return describe.HeldFleetBrake, time.Time{}
	case mayBeMany && isCautious && peers.Rounds < c.onset.round+roundsToHear && t.now.Before(heard):
		return heldUnheard, heard
	}
	return "", time.Time{}
}
