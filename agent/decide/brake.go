package decide

import (
	"fmt"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// Peers is what the agents of other Nodes said most recently. The zero value says
// that there are none.
type Peers struct {
	// Known is how many there are to be asked; negative: not known yet.
	Known int
	// Rounds counts the times that they were asked.
	Rounds uint64
	// Shares by condition.
	Shares map[probes.Condition]Share
}

// Share is how many peers told their level of a condition within the last minute,
// and how many of these have it Degraded or would have, but for the fleet brake.
type Share struct{ Asked, Bad int }

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

// brake is what a State knows of the fleet brake.
type brake struct {
	// policy is the configuration in force, since when.
	policy *Policy
	since  time.Time
}

// follow takes in the configuration.
func (b *brake) follow(policy *Policy, now time.Time) {
	if b.policy != policy {
		b.policy, b.since = policy, now
	}
}

// request is a Degraded that the evidence asks for and that was not set yet.
type request struct {
	since time.Time // zero: there is none
	// round is the number of rounds at that time.
	round uint64
	// braked says why it waits for the fleet; empty: it does not.
	braked string
	// told: people know that.
	told bool
}

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
		if !r.told {
			r.told = true
			t.tell(Notice{Kind: TaintBraked, Condition: c.name, Reason: string(TaintBraked), Message: fmt.Sprintf(
				"%s; %s. No taint follows until fewer do. Is the configuration right?", c.last.Message, r.braked)})
		}
		return true
	}
	r.braked = ""
	mayBeMany := peers.Known < 0 || peers.Known >= limit.MinPeers
	return mayBeMany && isCautious && peers.Rounds < r.round+roundsToHear &&
		t.now.Sub(r.since) < hearWithin
}

// Shared is the level of a condition that the peers are told: the requested one, since
// with the decided one the brake would hide from them what it holds back. While the
// newest sample cannot tell, it is Unknown: a level decided up to an hour ago
// (unknownAfter) would brake others.
func (s *State) Shared(name probes.Condition) probes.Level {
	if c := s.conditions.of(name); c != nil && c.last.Condition != "" && c.last.Level == probes.Unknown {
		return probes.Unknown
	}
	return s.Requested(name)
}

// Requested is the level that a condition has, or would have but for the fleet
// brake.
func (s *State) Requested(name probes.Condition) probes.Level {
	if c := s.conditions.of(name); c != nil && !c.request.since.IsZero() {
		return max(c.debounce.Level, probes.Degraded)
	}
	return s.Level(name)
}

// IsBraked reports whether the fleet brake holds a condition's taint back.
func (s *State) IsBraked(name probes.Condition) bool {
	c := s.conditions.of(name)
	return c != nil && c.request.braked != ""
}
