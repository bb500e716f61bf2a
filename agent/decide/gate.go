package decide

import (
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// gate says what keeps a condition from a level or, where the level is decided, the taint
// of its rule from the Node, and when that is over. Step decides by it, and people are
// told the same.
func (s *State) gate(t *turn, c *condition, level probes.Level) (describe.Hold, time.Time) {
	switch {
	case level == probes.OK:
		return c.tokenGate(t)
	case c.debounce.Level >= level:
		return s.ruleGate(t, c, level)
	case level == probes.Degraded:
		return s.brakeGate(t, c)
	}
	if held, until := s.evictionGate(t, c); held != "" {
		return held, until
	}
	return c.tokenGate(t)
}

// ruleGate says what keeps the taints of a level that is decided from the Node.
func (s *State) ruleGate(t *turn, c *condition, level probes.Level) (describe.Hold, time.Time) {
	for i := range t.policy.Rules {
		rule := &t.policy.Rules[i]
		if rule.Level != level || !c.isFor(rule) {
			continue
		}
		if held, until := s.gateOf(t, c, rule); held != "" {
			return held, until
		}
	}
	return "", time.Time{}
}

// gateOf says what keeps the taint of one rule, whose level is decided, from the Node.
func (s *State) gateOf(t *turn, c *condition, rule *Rule) (describe.Hold, time.Time) {
	if held := c.disputeOf(rule.Level).holds(); held != "" {
		return held, time.Time{}
	}
	d := s.asItStands(t.in.Node, place(rule, t.in.Facts))
	if held, until := s.taintGate(t, d); held != "" || t.in.Node.Has(d.Pair) {
		return held, until
	}
	return s.setAgainGate(t)
}

// taintGate says what keeps a taint from being desired that is not on the Node yet.
func (s *State) taintGate(t *turn, d DesiredTaint) (describe.Hold, time.Time) {
	switch {
	case t.in.Node.Has(d.Pair):
		return "", time.Time{}
	case d.Pair.Effect == taints.NoExecute && t.in.Slot != SlotHeld:
		return describe.HeldEvictionSlot, time.Time{}
	case s.pause.isEnding(d.Condition):
		return describe.HeldWriteBudget, s.upkeep.nextAt(t.policy.Upkeep)
	case s.pause.has(d.Condition):
		return s.pause.holds(d.Condition), time.Time{}
	}
	return "", time.Time{}
}

// isOver reports whether no write has set the taint yet, and the newest sample is good or older
// than the end of a silence. The way to the API server may have been a part of the trouble:
// what was decided meanwhile must not land when both are back. The next bad sample sets it.
func (s *State) isOver(t *turn, d DesiredTaint) bool {
	isSet := func(pair taints.Pair) bool { return slices.Contains(s.ledger.owned, pair) || t.in.Node.Has(pair) }
	if d.Level == probes.OK || d.manual || isSet(d.Pair) || isSet(d.ruled) || isSet(d.standIn) {
		return false
	}
	c := s.conditions.of(d.Condition)
	return c.last.Level == probes.OK && !c.last.Hysteresis || c.debounce.seenAt.Before(t.in.AnswersSince)
}

// setAgainGate says what keeps a decision that has landed from being written again,
// because somebody undid a part of it.
func (s *State) setAgainGate(t *turn) (describe.Hold, time.Time) {
	if next := s.upkeep.nextAt(t.policy.Upkeep); s.ledger.hasLanded() && t.now.Before(next) {
		return describe.HeldWriteBudget, next
	}
	return "", time.Time{}
}

// mayBeCritical reports whether a condition whose samples ask for Critical may step up
// or stay there, but for a token of the write budget.
func (s *State) mayBeCritical(t *turn, c *condition) bool {
	held, _ := s.evictionGate(t, c)
	return held == "" && (t.policy.HasRule(c.name, probes.Critical) || !c.debounce.unknownSince.IsZero())
}

// evictionGate says what keeps a condition from Critical, to step up or to stay there,
// and when that is over. To step up takes a token as well. Staying there ends when the slot is lost, but not when it is
// unknown. While the probe cannot tell, nothing else ends it. A vetoed taint would not
// be set, so the level is of no use.
func (s *State) evictionGate(t *turn, c *condition) (describe.Hold, time.Time) {
	isEvicting, isObserved, again := c.debounce.Level == probes.Critical, s.pause.observes(c.name), s.eviction.at.Add(t.policy.EvictionInterval)
	switch {
	case isEvicting && t.in.Slot == SlotNone && !isObserved:
		return describe.HeldEvictionSlot, time.Time{}
	case isEvicting && !c.debounce.unknownSince.IsZero():
		return "", time.Time{}
	case s.eviction.controlPlane && !t.policy.ControlPlaneEvicts:
		return describe.HeldControlPlane, time.Time{}
	case isObserved: // as if there were a slot
		return "", time.Time{}
	case c.disputeOf(probes.Critical).conceded != asRuled:
		return c.disputeOf(probes.Critical).holds(), time.Time{}
	case isEvicting:
		return "", time.Time{}
	case s.pause.has(c.name):
		return s.pause.holds(c.name), time.Time{}
	case !s.eviction.at.IsZero() && t.now.Before(again):
		return describe.HeldEvictionInterval, again
	case t.in.Slot != SlotHeld:
		return describe.HeldEvictionSlot, time.Time{}
	}
	return "", time.Time{}
}

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

// tokenGate says whether a condition has to wait for a token of its bucket, and until when.
func (c *condition) tokenGate(t *turn) (describe.Hold, time.Time) {
	if at := c.budget.nextAt(t.policy.WriteBudget); t.now.Before(at) {
		return describe.HeldWriteBudget, at
	}
	return "", time.Time{}
}

// clearsAt is when a condition will be OK if every sample is good from now on: it has
// been good for long enough then, and has its token. Nothing else takes that token.
func (c *condition) clearsAt(policy *Policy, now time.Time) time.Time {
	return later(c.debounce.goodAt(policy.debounce(c.name), now), c.budget.nextAt(policy.WriteBudget))
}

// bucket is the token bucket that bounds the writes, kept as the one time at
// which it will be full again (the virtual scheduling algorithm of ITU-T
// I.371). It needs no arithmetic on fractions and survives a restart exactly.
type bucket struct {
	fullAt time.Time
}

// take takes a token if there is one.
func (b bucket) take(c WriteBudget, now time.Time) (bucket, bool) {
	if now.Before(b.nextAt(c)) {
		return b, false
	}
	if b.fullAt.Before(now) {
		b.fullAt = now
	}
	return bucket{b.fullAt.Add(c.Interval.Duration)}, true
}

// nextAt is the earliest time at which a token is there.
func (b bucket) nextAt(c WriteBudget) time.Time {
	return b.fullAt.Add(-time.Duration(c.Burst-1) * c.Interval.Duration)
}

// left is how many tokens there are.
func (b bucket) left(c WriteBudget, now time.Time) int {
	missing, interval := max(0, b.fullAt.Sub(now)), c.Interval.Duration
	return max(0, c.Burst-int((missing+interval-1)/interval))
}

// within is the bucket with no more tokens missing than the budget has: a clock
// may have been stepped, or the budget been made larger.
func (b bucket) within(c WriteBudget, now time.Time) bucket {
	return bucket{earlier(b.fullAt, now.Add(time.Duration(c.Burst)*c.Interval.Duration))}
}

// isLongCritical reports whether the samples of a Degraded condition have asked for
// Critical for long enough, and a rule does too.
func (s *State) isLongCritical(t *turn, c *condition) bool {
	return c.debounce.Level == probes.Degraded && t.policy.HasRule(c.name, probes.Critical) &&
		c.debounce.Target(t.policy.debounce(c.name), t.now) == probes.Critical
}

// needsSlot reports whether a condition would evict if it had a slot, and a token.
func (s *State) needsSlot(t *turn, c *condition) bool {
	if !s.isLongCritical(t, c) || s.pause.observes(c.name) {
		return false
	}
	held, _ := s.evictionGate(t, c)
	return held == "" || held == describe.HeldEvictionSlot
}

// requestSlot says what the slot is needed for. It is kept until the NoExecute
// pairs have left the Node: the slot bounds what stands, not what is desired.
func (s *State) requestSlot(t *turn) SlotRequest {
	// A level alone, which a record may forge, needs no slot: a taint that somebody
	// removed is not asked for any more.
	for i := range t.policy.Rules {
		rule := &t.policy.Rules[i]
		if rule.Taint.Effect == taints.NoExecute && s.letsStand(rule) {
			return SlotInUse
		}
	}
	request := SlotNotNeeded
	for i := range s.conditions {
		if s.needsSlot(t, &s.conditions[i]) {
			request = SlotRequested
		}
	}
	for _, pair := range s.ledger.owned {
		if pair.Effect == taints.NoExecute && t.in.Node.Has(pair) {
			return SlotInUse
		}
	}
	return request
}

// notifyWaiting tells people once when an eviction waits for a slot.
func (s *State) notifyWaiting(t *turn) {
	waits := t.Slot == SlotRequested && t.in.Slot == SlotNone
	if waits && !s.eviction.waits {
		t.notify(Notice{Kind: EvictionWaits, Message: describe.SlotMissing()})
	}
	s.eviction.waits = waits
}
