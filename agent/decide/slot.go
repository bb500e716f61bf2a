package decide

import (
	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/taints"
)

// requestSlot says what the slot is needed for. It is kept until the NoExecute
// pairs have left the Node: the slot bounds what stands, not what is desired.
func (s *State) requestSlot(t *turn) SlotRequest {
	// A level alone, which a record may forge, needs no slot: a taint that somebody
	// removed is not asked for any more.
	for i := range t.policy.Rules {
		rule := &t.policy.Rules[i]
		if dispute, asks := s.letsStand(rule); asks && dispute.conceded == asRuled && rule.Taint.Effect == taints.NoExecute {
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
