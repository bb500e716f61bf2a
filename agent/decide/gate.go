package decide

import (
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// refusesCritical is the first gate that keeps a condition from being Critical, and when that is over;
// empty: nothing does. Step decides by it, and the Node's condition, the record and the metric say
// the same. What is decided may still wait for its write.
func (s *State) refusesCritical(t *turn, c *condition) (describe.Hold, time.Time) {
	begins, again := c.debounce.Level < probes.Critical, s.eviction.at.Add(t.policy.EvictionInterval)
	isBlind := !begins && !c.debounce.unknownSince.IsZero() // then it stays, but for a lost slot
	switch yields := c.disputeOf(probes.Critical).holds(); {
	case c.isObserved(): // it goes on as if nothing held it
	case begins && c.isPaused():
		return s.pauseGate(t, c)
	case yields != "" && !isBlind: // the taint would not be set, so its level is of no use
		return yields, time.Time{}
	case begins && t.now.Before(again):
		return describe.HeldEvictionInterval, again
	}
	switch {
	case !isBlind && !t.policy.ControlPlaneEvicts && t.in.Node.isControlPlane():
		return describe.HeldControlPlane, time.Time{}
	case c.isObserved():
	case t.in.Slot == SlotNone, begins && t.in.Slot != SlotHeld: // an unknown slot ends no eviction
		return describe.HeldEvictionSlot, time.Time{}
	}
	return "", time.Time{}
}

// refusesTaint is the same for the taint of a level that is decided. Only the fleet brake keeps a
// new Degraded from being decided.
func (s *State) refusesTaint(t *turn, c *condition, d DesiredTaint) (describe.Hold, time.Time) {
	adds := !t.in.Node.Has(d.Pair)
	switch yields := c.disputeOf(d.Level).holds(); {
	case adds && c.isPaused():
		return s.pauseGate(t, c)
	case yields != "":
		return yields, time.Time{}
	case adds && d.Pair.Effect == taints.NoExecute && t.in.Slot != SlotHeld:
		return describe.HeldEvictionSlot, time.Time{}
	}
	return "", time.Time{}
}

// pauseGate is what stops additions for a condition, or the token that its end waits for.
func (s *State) pauseGate(t *turn, c *condition) (describe.Hold, time.Time) {
	if t.in.Node != nil && PausedBy(t.in.Node.Node, t.policy, c.name) == "" {
		return describe.HeldWriteBudget, s.upkeep.nextAt(t.policy.Upkeep)
	}
	return c.stopped, time.Time{}
}

// writeGate holds what needs a token that is not there: the begin of an eviction one of its
// condition, and what others removed one of the Node.
func writeGate(b bucket, c WriteBudget, now time.Time) (describe.Hold, time.Time) {
	if next := b.nextAt(c); now.Before(next) {
		return describe.HeldWriteBudget, next
	}
	return "", time.Time{}
}

// whyNot says what keeps the taints of a condition that is not OK from the Node, or the
// eviction that its samples ask for.
func (s *State) whyNot(t *turn, c *condition) (held describe.Hold, until time.Time, isEviction bool) {
	if held, until = s.gateOfTaints(t, c, probes.Degraded); held != "" || !s.wantsToEvict(t, c) {
		return held, until, false
	}
	if c.debounce.Level == probes.Critical {
		held, until = s.gateOfTaints(t, c, probes.Critical)
	} else if held, until = s.refusesCritical(t, c); held == "" {
		held, until = writeGate(c.budget, t.policy.WriteBudget, t.now)
	}
	return held, until, held != ""
}

// gateOfTaints says what keeps the taints of a level that is decided from the Node.
func (s *State) gateOfTaints(t *turn, c *condition, level probes.Level) (describe.Hold, time.Time) {
	for i := range t.policy.Rules {
		rule := &t.policy.Rules[i]
		if rule.Level != level || !c.isFor(rule) {
			continue
		}
		d := s.asItStands(t.in.Node, place(rule, t.in.Facts))
		held, until := s.refusesTaint(t, c, d)
		if held == "" && !t.in.Node.Has(d.Pair) && s.ledger.hasLanded() {
			held, until = writeGate(s.upkeep, t.policy.Upkeep, t.now)
		}
		if held != "" {
			return held, until
		}
	}
	return "", time.Time{}
}

// mayBeCritical reports whether a condition whose samples ask for Critical may step up
// or stay there, but for a token of the write budget.
func (s *State) mayBeCritical(t *turn, c *condition) bool {
	held, _ := s.refusesCritical(t, c)
	return held == "" && (t.policy.HasRule(c.name, probes.Critical) || !c.debounce.unknownSince.IsZero())
}

// mayDegrade notes that the samples ask for a new Degraded, asks the fleet brake about it, and
// reports whether it may be set. An Event reports it once when the brake holds it.
func (s *State) mayDegrade(t *turn, c *condition) bool {
	r, share := &c.onset, t.in.Peers.Shares[c.name]
	if r.since.IsZero() {
		r.since, r.round = t.now, t.in.Peers.Rounds
	}
	held := s.brake(t, c)
	if r.braked = ""; held != describe.HeldFleetBrake {
		return held == ""
	}
	if share.Asked < t.policy.FleetBrake.MinPeers {
		r.braked = describe.Silenced(c.name, share.Asked)
		return false
	}
	r.braked = describe.Braked(c.name, share.Bad, share.Asked, share.ZoneBad, share.ZoneAsked)
	if !r.notified {
		r.notified = true
		t.notify(Notice{Kind: TaintBraked, Condition: c.name, Message: describe.BrakeBegins(c.last.Message, r.braked)})
	}
	return false
}

// isOver reports whether no write has set the taint yet, and the newest sample is good or the newest
// bad one older than the end of a silence. The way to the API server may have been a part of the trouble, so a
// decision from the time of the silence must not be written when both have recovered. The next bad
// sample sets it.
func (s *State) isOver(t *turn, d DesiredTaint) bool {
	isSet := func(pair taints.Pair) bool { return slices.Contains(s.ledger.owned, pair) || t.in.Node.Has(pair) }
	if d.Level == probes.OK || d.manual || isSet(d.Pair) || isSet(d.ruled) || isSet(d.standIn) {
		return false
	}
	c := s.conditions.of(d.Condition)
	return c.last.Level == probes.OK && !c.last.Hysteresis || c.debounce.badAt.Before(t.in.AnswersSince)
}

const (
	// cautiousFor is how long after a start, or after a change of the configuration, the brake is
	// cautious. The peers may have the same wrong threshold and not have said so yet. So a new
	// Degraded first waits for their answers, and a smaller share brakes: the share among 12
	// sampled peers may be smaller than that of the fleet.
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

// brake says whether a new Degraded has to wait, because the peers have the same condition or were
// not heard yet. A condition that a large part of a fleet has at the same time is more likely a
// wrong configuration than trouble of the hosts. A fleet without room for new pods is worse than
// either. So is a zone without room, where enough of its hosts are peers: autoscalers and volumes
// know zones. This host counts as one of the fleet: otherwise the share of the tainted hosts would
// be larger than that which brakes.
func (s *State) brake(t *turn, c *condition) describe.Hold {
	limit, peers, share := t.policy.FleetBrake, t.in.Peers, t.in.Peers.Shares[c.name]
	percent, isCautious := limit.Percent, t.now.Sub(s.ledger.policySince) < cautiousFor
	if isCautious {
		percent = percent * cautiousNum / cautiousDen
	}
	mayBeMany := peers.Known < 0 || peers.Known >= limit.MinPeers
	switch {
	case limit.Percent == 0:
		return ""
	case c.onset.braked != "" && share.Asked < limit.MinPeers && mayBeMany:
		return describe.HeldFleetBrake // whoever keeps the peers from answering must not end the brake
	case share.reaches(percent, limit.MinPeers), share.zone().reaches(percent, limit.MinPeers):
		return describe.HeldFleetBrake
	case mayBeMany && isCautious && peers.Rounds < c.onset.round+roundsToHear && t.now.Before(c.onset.since.Add(hearWithin)):
		return heldUnheard
	}
	return ""
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
func (b *bucket) take(c WriteBudget, now time.Time) bool {
	if now.Before(b.nextAt(c)) {
		return false
	}
	b.fullAt = later(b.fullAt, now).Add(c.Interval.Duration)
	return true
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

// wantsToEvict reports whether the samples of a condition ask for an eviction: they have
// been critical for long enough, and the newest one is.
func (s *State) wantsToEvict(t *turn, c *condition) bool {
	d := &c.debounce
	return d.Level == probes.Critical && d.class == critical && d.unknownSince.IsZero() || s.isLongCritical(t, c)
}

// needsSlot reports whether a condition would evict if it had a slot, and a token.
func (s *State) needsSlot(t *turn, c *condition) bool {
	if !s.isLongCritical(t, c) || c.isObserved() {
		return false
	}
	held, _ := s.refusesCritical(t, c)
	return held == "" || held == describe.HeldEvictionSlot
}

// requestSlot says what the slot is needed for. It is kept until the NoExecute
// pairs have left the Node: the slot bounds what stands, not what is desired.
func (s *State) requestSlot(t *turn) SlotRequest {
	// A level alone, which a record may forge, needs no slot: a taint that another client removed
	// is no longer requested.
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

// notifyWaiting writes an Event once when an eviction waits for a slot.
func (s *State) notifyWaiting(t *turn) {
	waits := t.Slot == SlotRequested && t.in.Slot == SlotNone
	if waits && !s.eviction.waits {
		t.notify(Notice{Kind: EvictionWaits, Message: describe.SlotMissing})
	}
	s.eviction.waits = waits
}
