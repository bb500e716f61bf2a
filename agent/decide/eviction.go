package decide

import (
	"slices"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Slot says whether this Node holds one of the fleet's eviction slots.
type Slot uint8

const (
	// SlotUnknown means that nobody has asked yet, or the API server does not
	// answer. What was decided stays; nothing new is evicted.
	SlotUnknown Slot = iota
	// SlotNone means that there is none for this Node, or it was lost: step down.
	SlotNone
	// SlotHeld means that this Node may evict.
	SlotHeld
)

// SlotRequest is what the decider needs of the slot.
type SlotRequest uint8

const (
	// SlotUndecided means that nothing is known of the Node.
	SlotUndecided SlotRequest = iota
	// SlotOfAnother means that another agent is active for this Node and keeps
	// its slot.
	SlotOfAnother
	// SlotNotNeeded means that no NoExecute pair of ours is on the Node or desired there.
	SlotNotNeeded
	// SlotRequested means that only a slot is missing before this Node evicts.
	SlotRequested
	// SlotInUse means that the Node carries a NoExecute pair of ours, or is about to.
	SlotInUse
)

// eviction is what a State knows of evictions of this Node.
type eviction struct {
	// at is when this Node most recently stepped up to Critical.
	at time.Time
	// controlPlane: the Node is labelled as one of the control plane.
	controlPlane bool
	// waits: people know that an eviction waits for a slot.
	waits bool
}

// mayBeCritical reports whether a condition whose samples ask for Critical may step up
// or stay there, but for a token of the write budget.
func (s *State) mayBeCritical(t *turn, c *condition) bool {
	held, _ := s.evictionGate(t, c)
	return (held == "" || held == HeldWriteBudget) && (t.policy.Asks(c.name, probes.Critical) || !c.debounce.unknownSince.IsZero())
}

// evictionGate says what keeps a condition from Critical, to step up or to stay there,
// and when that is over. Staying there ends when the slot is lost, but not when it is
// unknown. While the probe cannot tell, nothing else ends it. A vetoed taint would not
// be set, so the level is of no use.
func (s *State) evictionGate(t *turn, c *condition) (Hold, time.Time) {
	isEvicting, again := c.debounce.Level == probes.Critical, s.eviction.at.Add(t.policy.EvictionInterval)
	switch {
	case isEvicting && t.in.Slot == SlotNone:
		return HeldEvictionSlot, time.Time{}
	case isEvicting && !c.debounce.unknownSince.IsZero():
		return "", time.Time{}
	case s.eviction.controlPlane && !t.policy.ControlPlaneEvicts:
		return HeldControlPlane, time.Time{}
	case c.disputeOf(probes.Critical).stage == withdrawn:
		return HeldVetoed, time.Time{}
	case isEvicting:
		return "", time.Time{}
	case s.pause.has(c.name):
		return HeldPaused, time.Time{}
	case !s.eviction.at.IsZero() && t.now.Before(again):
		return HeldEvictionInterval, again
	case t.in.Slot != SlotHeld:
		return HeldEvictionSlot, time.Time{}
	}
	return s.tokenGate(t, c)
}

// asksForCritical reports whether the samples of a Degraded condition have asked for
// Critical for long enough, and a rule does too.
func (s *State) asksForCritical(t *turn, c *condition) bool {
	return c.debounce.Level == probes.Degraded && t.policy.Asks(c.name, probes.Critical) &&
		c.debounce.Target(t.debounce(c.name), t.now) == probes.Critical
}

// needsSlot reports whether a condition would evict if it had a slot, and a token.
func (s *State) needsSlot(t *turn, c *condition) bool {
	if !s.asksForCritical(t, c) {
		return false
	}
	held, _ := s.evictionGate(t, c)
	return held == "" || held == HeldEvictionSlot || held == HeldWriteBudget
}

func isControlPlane(node *taints.Node) bool {
	for _, label := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		if _, found := node.Labels[label]; found {
			return true
		}
	}
	return false
}

// requestSlot says what the slot is needed for. It is kept until the NoExecute
// pairs have left the Node: the slot bounds what stands, not what is desired.
func (s *State) requestSlot(t *turn) SlotRequest {
	// A level alone, which a record may forge, needs no slot: a taint that somebody
	// removed is not asked for any more.
	if slices.ContainsFunc(s.asked(t), func(d desired) bool { return d.taint.Effect == taints.NoExecute }) {
		return SlotInUse
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

// tellWaiting tells people once when an eviction waits for a slot.
func (s *State) tellWaiting(t *turn) {
	waits := t.Slot == SlotRequested && t.in.Slot == SlotNone
	if waits && !s.eviction.waits {
		t.tell(Notice{Kind: EvictionWaits, Reason: string(EvictionWaits), Message: "a condition is critical, but all eviction slots are taken or missing; no pod is evicted"})
	}
	s.eviction.waits = waits
}
