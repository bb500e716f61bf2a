package decide

import (
	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

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
