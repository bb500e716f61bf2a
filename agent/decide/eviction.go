package decide

import (
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

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
