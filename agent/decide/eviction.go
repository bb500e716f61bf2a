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

// mayBeCritical reports whether a condition may be Critical at all: to stay
// there, or to step up. Stepping up needs all that evictionIsDue asks for and the slot.
// Staying ends when the slot is lost, but not when it is unknown.
func (s *State) mayBeCritical(t *turn, c *condition) bool {
	if c.last.Level != probes.Critical || !s.mayEvict(t, c) {
		return false
	}
	if c.debounce.Level == probes.Critical {
		return t.in.Slot != SlotNone
	}
	return t.in.Slot == SlotHeld && s.evictionIsDue(t, c)
}

// mayEvict reports whether the configuration, the Node and its people let this
// condition evict. A vetoed taint would not be set, so the level is of no use.
func (s *State) mayEvict(t *turn, c *condition) bool {
	return t.policy.Asks(c.name, probes.Critical) &&
		c.disputeOf(probes.Critical).stage != withdrawn &&
		(t.policy.ControlPlaneEvicts || !s.eviction.controlPlane)
}

// evictionIsDue reports whether nothing but a slot is missing for a step up to
// Critical. The condition's samples have been critical for long enough, nobody
// has paused it, and the last eviction of this Node is long enough ago.
func (s *State) evictionIsDue(t *turn, c *condition) bool {
	d := c.debounce
	return d.Level == probes.Degraded && d.class == critical && d.unknownSince.IsZero() &&
		d.held >= t.debounce(c.name).CriticalAfter.Duration &&
		s.mayEvict(t, c) && !s.pause.has(c.name) &&
		(s.eviction.at.IsZero() || t.now.Sub(s.eviction.at) >= t.policy.EvictionInterval)
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
		if s.evictionIsDue(t, &s.conditions[i]) {
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
