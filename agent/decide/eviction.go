package decide

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Slot says whether this Node holds one of the fleet's eviction slots.
type Slot uint8

const (
	// SlotUnknown means that nobody has looked yet, or the API server is away. What was
	// decided stays; nothing new is evicted.
	SlotUnknown Slot = iota
	// SlotNone means that there is none for this Node, or it was lost: step down.
	SlotNone
	// SlotHeld means that this Node may evict.
	SlotHeld
)

// SlotWish is what the decider wishes of the slot.
type SlotWish uint8

const (
	// SlotAsItIs means that nothing is known of the Node.
	SlotAsItIs SlotWish = iota
	// SlotLeft means that another agent looks after this Node, and after its slot.
	SlotLeft
	// SlotNotNeeded means that no NoExecute pair of ours is on the Node or wanted there.
	SlotNotNeeded
	// SlotWanted means that only a slot is missing before this Node evicts.
	SlotWanted
	// SlotInUse means that the Node carries a NoExecute pair of ours, or is about to.
	SlotInUse
)

// mayBeCritical reports whether Critical is to be had by a condition at all: to
// stay there, or to step up to. Stepping up needs all that evicts calls for and
// the slot; staying ends when the slot is lost, but not when it is unknown.
func (s *State) mayBeCritical(cfg *config.Config, condition probes.Condition, slot Slot, now time.Time) bool {
	c := &s.conditions[index(condition)]
	if c.last.Level != probes.Critical || !s.mayEvict(cfg, condition) {
		return false
	}
	if c.debounce.Level == probes.Critical {
		return slot != SlotNone
	}
	return slot == SlotHeld && s.evicts(cfg, condition, now)
}

// mayEvict reports whether the configuration, the Node and its people let this
// condition evict. A vetoed taint would not be set, so the level is of no use.
func (s *State) mayEvict(cfg *config.Config, condition probes.Condition) bool {
	return cfg.Asks(condition, probes.Critical) &&
		s.conditions[index(condition)].disputeOf(probes.Critical).stage != withdrawn &&
		(cfg.Eviction.ControlPlane || !s.controlPlane)
}

// evicts reports whether nothing but a slot is missing for a step up to
// Critical: it has looked critical for long enough, nobody has paused it, and
// the last eviction of this Node is long enough ago.
func (s *State) evicts(cfg *config.Config, condition probes.Condition, now time.Time) bool {
	d := s.conditions[index(condition)].debounce
	return d.Level == probes.Degraded && d.class == critical && d.unknownSince.IsZero() &&
		d.held >= cfg.Debounce(condition).CriticalAfter.Duration &&
		s.mayEvict(cfg, condition) && !s.paused.has(condition) &&
		(s.evictedAt.IsZero() || now.Sub(s.evictedAt) >= cfg.Eviction.Interval.Duration)
}

func isControlPlane(node *corev1.Node) bool {
	for _, label := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		if _, found := node.Labels[label]; found {
			return true
		}
	}
	return false
}

// slotWish says what the slot is needed for. It is not let go of before the
// NoExecute pairs are off the Node: the slot bounds what stands, not what is
// wanted.
func (s *State) slotWish(cfg *config.Config, in Inputs, now time.Time) SlotWish {
	wish := SlotNotNeeded
	for _, condition := range probes.Conditions() {
		if s.Level(condition) == probes.Critical {
			return SlotInUse
		}
		if s.evicts(cfg, condition, now) {
			wish = SlotWanted
		}
	}
	for _, pair := range s.owned {
		if pair.Effect == corev1.TaintEffectNoExecute && taints.Has(in.Node.Spec.Taints, pair) {
			return SlotInUse
		}
	}
	return wish
}

// tellWaiting tells people once when an eviction waits for a slot.
func (s *State) tellWaiting(slot Slot, d *Decision) {
	waits := d.Slot == SlotWanted && slot == SlotNone
	if waits && !s.waitsForSlot {
		d.Notices = append(d.Notices, Notice{Kind: EvictionWaits, Reason: string(EvictionWaits), Message: "a condition is critical, but all eviction slots are taken or missing; no pod is evicted"})
	}
	s.waitsForSlot = waits
}

// underSlot leaves out NoExecute taints that are yet to be set while the slot is
// not certain: everything else is to be written all the same.
func underSlot(want []wanted, in Inputs) []wanted {
	if in.Slot == SlotHeld {
		return want
	}
	return slices.DeleteFunc(want, func(w wanted) bool {
		return w.taint.Effect == corev1.TaintEffectNoExecute && !taints.Has(in.Node.Spec.Taints, w.taint.Pair())
	})
}
