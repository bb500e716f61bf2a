package decide

import (
	"slices"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
)

// outlook returns what a condition waits for now.
func (s *State) outlook(t *turn, c *condition) describe.Outlook {
	if c.debounce.Level <= probes.OK {
		o := describe.Outlook{Suspicion: c.suspicion(), Soft: c.softShown(t.policy)}
		switch {
		case c.onset.braked != "":
			o.Held = describe.HeldFleetBrake
		case c.manual == awaiting:
			o.Held = describe.HeldAwaitsRemoval
		}
		o.Starting = s.starting(t, c)
		return o
	}
	o := describe.Outlook{Starting: s.starting(t, c), Blind: !c.debounce.unknownSince.IsZero(), Removals: recent(c.removals, t.now)}
	if classOf(c.last) >= bad {
		o.Reason, o.Culprit = c.last.Reason, c.last.Culprit.Who()
	}
	if d := *c.disputeOf(probes.Degraded); d.conceded == standIn && t.policy.HasRule(c.name, probes.Degraded) {
		o.StandIn, o.Until = true, d.until
	}
	o.KeepFails = s.KeepFails(t.policy, c.name)
	if held, until := s.gate(t, c, probes.Degraded); held != "" {
		o.Held, o.Until = held, until
	} else if s.wantsToEvict(t, c) {
		if held, until := s.gate(t, c, probes.Critical); held != "" {
			o.Held, o.Until, o.Evicting = held, until, true
		}
	}
	if c.debounce.isClearing() {
		o.Clears = s.clearsAt(t.policy, c, t.now)
		if o.Held == "" && o.Clears.After(c.debounce.goodAt(t.policy.debounce(c.name), t.now)) {
			o.Held, o.Until = describe.HeldWriteBudget, o.Clears
		}
	}
	return o
}

// starting returns what keeps the start-up taint on the Node, if that is this condition.
func (s *State) starting(t *turn, c *condition) describe.Starting {
	if !s.IsStarting() {
		return describe.Starting{}
	}
	missing := s.awaits(t, c)
	if missing == "" {
		return describe.Starting{}
	}
	return describe.Starting{Taint: t.policy.Startup.Taint, Since: s.startup.since, Missing: missing}
}

// wantsToEvict reports whether the samples of a condition ask for an eviction: they have
// been critical for long enough, and the newest one is.
func (s *State) wantsToEvict(t *turn, c *condition) bool {
	d := &c.debounce
	return d.Level == probes.Critical && d.class == critical && d.unknownSince.IsZero() || s.isLongCritical(t, c)
}

// describe returns what the Node condition of a condition is rendered from.
func (s *State) describe(t *turn, c *condition, o describe.Outlook, reported probes.Observation) describe.Condition {
	debounce := t.policy.debounce(c.name)
	d := describe.Condition{
		Outlook: o, Level: c.debounce.Level, Newest: c.last, Reported: reported, IsBad: classOf(c.last) >= bad,
		SetAt: c.debounce.SetAt, Good: c.last.Clears,
		ClearAfter: c.debounce.ClearAfter(debounce), NoRule: !s.isRuled(t, c), Manual: c.manual == awaiting,
		Braked: c.onset.braked, Unrecorded: s.ledger.unrecorded,
	}
	d.SetFor, d.SetBy = c.cause()
	if d.NoRule && t.policy.HasRule(c.name, probes.Degraded) {
		d.NoRuleFor = c.reason
	}
	if c.debounce.Level == probes.Critical {
		d.CriticalAt = c.since
	}
	if classOf(c.last) == clear && c.lastBad.Level > probes.OK {
		d.Good = c.lastBad.Clears // of the sample that is to become good
	}
	if c.debounce.isDamped(debounce) {
		d.Damped = c.debounce.flaps()
	}
	return d
}

// isRuled reports whether a rule asks for a taint for a reason that the condition has.
func (s *State) isRuled(t *turn, c *condition) bool {
	return slices.ContainsFunc(t.policy.Rules, func(r Rule) bool { return r.Level == probes.Degraded && c.isFor(&r) })
}

// cause returns the reason for which the condition was set, and what was found then. A
// restarted agent knows the reason only.
func (c *condition) cause() (reason, message string) {
	if c.decisive.Level > probes.OK {
		return c.decisive.Reason, c.decisive.Message
	}
	return c.reason, c.reason
}
