package decide

import (
	"slices"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// Hold says in one word what keeps a condition from its taint, from an eviction, or
// from clearing. Empty: nothing does.
type Hold string

// What can hold a condition back.
const (
	// HeldContested means that others removed the taint and its stand-in twice.
	HeldContested Hold = "Contested"
	// HeldVetoed means that others removed a NoExecute taint.
	HeldVetoed Hold = "Vetoed"
	// HeldPaused means that a person paused the condition.
	HeldPaused Hold = "Paused"
	// HeldFleetBrake means that half of the fleet has the condition.
	HeldFleetBrake Hold = "FleetBrake"
	// HeldWriteBudget means that the write budget has no token.
	HeldWriteBudget Hold = "WriteBudget"
	// HeldEvictionSlot means that this Node has no eviction slot.
	HeldEvictionSlot Hold = "EvictionSlot"
	// HeldEvictionInterval means that this Node evicted a short time ago.
	HeldEvictionInterval Hold = "EvictionInterval"
	// HeldControlPlane means that a Node of the control plane does not evict.
	HeldControlPlane Hold = "ControlPlane"
)

// known returns the Hold, empty if it is none of those above.
func (h Hold) known() Hold {
	switch h {
	case HeldContested, HeldVetoed, HeldPaused, HeldFleetBrake, HeldWriteBudget, HeldEvictionSlot, HeldEvictionInterval, HeldControlPlane:
		return h
	}
	return ""
}

// outlook is what a Node condition says beside the value: what holds its taint
// back, and when it clears.
type outlook struct {
	// suspicion is the reason with which the host suspects itself; empty: it does
	// not. Its peers read that.
	suspicion string
	// reason of the newest bad sample.
	reason string
	held   Hold
	// evicting: it is the eviction that is held back, not the taint of Degraded.
	evicting bool
	// until is when what holds the taint back is over; zero: that is not known.
	until time.Time
	// standIn: the stand-in takes the taint's place.
	standIn bool
	// clears is when the condition is OK if all goes well; zero: the newest sample
	// was not good.
	clears time.Time
	// blind: the probe cannot tell.
	blind bool
}

// equals reports whether both are told in the same words. People are told full
// minutes.
func (o outlook) equals(other outlook) bool {
	o.clears, other.clears = nextMinute(o.clears), nextMinute(other.clears)
	o.until, other.until = nextMinute(o.until), nextMinute(other.until)
	return o == other
}

// outlook returns what a condition waits for now.
func (s *State) outlook(t *turn, c *condition) outlook {
	if c.debounce.Level <= probes.OK {
		o := outlook{suspicion: c.suspicion()}
		if c.request.braked != "" {
			o.held = HeldFleetBrake
		}
		return o
	}
	o := outlook{blind: !c.debounce.unknownSince.IsZero()}
	if classOf(c.last) >= bad {
		o.reason = c.last.Reason
	}
	if d := *c.disputeOf(probes.Degraded); d.stage == standIn && t.policy.Asks(c.name, probes.Degraded) {
		o.standIn, o.until = true, d.until
	}
	if held, until := s.taintHeld(t, c); held != "" {
		o.held, o.until = held, until
	} else if held, until := s.evictionHeld(t, c); held != "" {
		o.held, o.until, o.evicting = held, until, true
	}
	if c.debounce.isClearing() {
		o.clears = s.clearsAt(t.policy, c, t.now)
		if o.held == "" && o.clears.After(c.debounce.goodAt(t.debounce(c.name), t.now)) {
			o.held, o.until = HeldWriteBudget, o.clears
		}
	}
	return o
}

// suspicion is the reason with which the host suspects itself.
func (c *condition) suspicion() string {
	if c.last.Suspicion && c.last.Level == probes.Unknown && c.debounce.Level == probes.OK {
		return c.last.Reason
	}
	return ""
}

// taintHeld says what keeps the taint of Degraded from the Node.
func (s *State) taintHeld(t *turn, c *condition) (Hold, time.Time) {
	if !t.policy.Asks(c.name, probes.Degraded) {
		return "", time.Time{}
	}
	if held, until := c.disputeOf(probes.Degraded).holds(); held != "" {
		return held, until
	}
	if !s.lacks(t, c.name, probes.Degraded) {
		return "", time.Time{}
	}
	next := s.budget.nextAt(t.policy.WriteBudget)
	switch {
	case s.pause.isEnding(c.name):
		return HeldWriteBudget, next
	case s.pause.has(c.name):
		return HeldPaused, time.Time{}
	case s.ledger.hasLanded() && t.now.Before(next):
		return HeldWriteBudget, next
	}
	return "", time.Time{}
}

// lacks reports whether the taint of the condition's rule for a level is not on the
// Node, nor what stands in for it.
func (s *State) lacks(t *turn, name probes.Condition, level probes.Level) bool {
	return !slices.ContainsFunc(s.ledger.desired, func(d desired) bool {
		return d.condition == name && d.level == level && t.in.Node.Has(d.taint.Pair())
	})
}

// holds says how a dispute keeps a taint from the Node.
func (d dispute) holds() (Hold, time.Time) {
	switch {
	case d.stage != withdrawn:
		return "", time.Time{}
	case d.until.IsZero():
		return HeldVetoed, time.Time{}
	}
	return HeldContested, d.until
}

// evictionHeld says what keeps a condition from evicting that has been critical for
// long enough.
func (s *State) evictionHeld(t *turn, c *condition) (Hold, time.Time) {
	d := &c.debounce
	isCut := d.Level == probes.Critical && d.class == critical && d.unknownSince.IsZero() && t.policy.Asks(c.name, probes.Critical) &&
		t.in.Slot != SlotHeld && s.lacks(t, c.name, probes.Critical)
	switch {
	case isCut:
		return HeldEvictionSlot, time.Time{}
	case s.asksForCritical(t, c):
		return s.evictionGate(t, c)
	}
	return "", time.Time{}
}

// nextMinute rounds up to a full minute, so that nothing is told to be over before
// it is.
func nextMinute(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(time.Minute - 1).Truncate(time.Minute)
}
