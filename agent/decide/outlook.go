package decide

import (
	"slices"
	"time"

	"github.com/taintlet/taintlet/probes"
)

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
		if o.held == "" && o.clears.After(c.debounce.goodAt(t.policy.debounce(c.name), t.now)) {
			o.held, o.until = HeldWriteBudget, o.clears
		}
	}
	return o
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
