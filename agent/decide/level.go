package decide

import (
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
)

// observe adds a sample and moves the condition's level as far as the evidence
// and its bucket allow.
func (s *State) observe(t *turn, o probes.Observation) {
	c := s.conditions.of(o.Condition)
	if c == nil {
		return // its probe was dropped a moment ago
	}
	for i := range c.latches {
		c.latches[i].Debouncer = c.latches[i].Next(c.latches[i].judge(o), t.now)
	}
	o = t.policy.graded(o)
	if s.lacksProof(c, o) {
		o.Hysteresis = true
	}
	if c.alike++; o.Reason != c.last.Reason {
		c.alike = 1
	}
	c.last = o
	c.learnCause(o)
	before := c.debounce
	policy, _ := t.policy.Condition(c.name)
	c.fault = c.fault.next(policy, o, t.now)
	c.debounce = before.Next(o, t.now)
	if !s.active.restored {
		return
	}
	debounce := t.policy.debounce(c.name)
	c.followReason(t.policy, debounce, o)
	c.notifyUnknown(t, debounce)
	target := c.debounce.Target(debounce, t.now)
	if target == probes.Critical && !s.mayBeCritical(t, c) {
		target = probes.Degraded
	}
	switch {
	case target == before.Level:
		if c.debounce.unknownSince.IsZero() {
			c.onset = onset{}
		}
		return
	case before.Level == probes.Critical: // it steps down, without a token
	case target == probes.Degraded && !s.mayDegrade(t, c), target != probes.Degraded && !c.budget.take(t.policy.WriteBudget, t.now):
		return
	}
	c.onset = onset{}
	s.enter(t, c, target)
}

// enter takes a condition to another level.
func (s *State) enter(t *turn, c *condition, target probes.Level) {
	before, former := c.debounce.Level, c.reason()
	c.debounce, c.since = c.debounce.Enter(target, t.policy.debounce(c.name), t.now), t.now
	if target == probes.OK || classOf(c.last) >= bad || c.decisive.Level <= probes.OK {
		c.decisive = c.last
	}
	if c.addReason(t.policy, former); target == probes.OK {
		c.ruled = ""
	}
	switch {
	case target == probes.Critical && !c.isObserved():
		s.eviction.at = t.now
	case before == probes.OK:
		c.removals = describe.Removals{} // those of an earlier incident say nothing of this one
	}
	t.notify(Notice{Kind: LevelChanged, Condition: c.name, From: before, To: target,
		Reason: c.decisive.Reason, Message: describe.Changed(c.decisive, c.last)})
}

// lacksProof reports whether a good sample clears nothing, because the probe has not
// seen well since its start what the condition was set for. Before the record is read
// that may be anything.
func (s *State) lacksProof(c *condition, o probes.Observation) bool {
	return o.Level == probes.OK && (slices.Contains(o.NeverHealthy, c.reason()) || !s.active.restored && len(o.NeverHealthy) > 0)
}

// learnCause keeps the sample that may set the condition. Once it is set, a later sample replaces
// it if it names the culprit that the first one did not know, or says that there is none, or if it
// is worse.
func (c *condition) learnCause(o probes.Observation) {
	isCause := c.debounce.Level <= probes.OK && classOf(o) >= bad
	isLate := c.decisive.Level > probes.OK && c.decisive.Culprit.Kind == "" && (o.Culprit.Kind != "" || o.Culprit.IsTold && !c.decisive.Culprit.IsTold)
	isWorse := c.debounce.Level > probes.OK && classOf(o) >= bad && o.Severity > c.decisive.Severity
	if isCause || (isLate && o.Level == c.decisive.Level || isWorse) && o.Reason == c.decisive.Reason {
		c.decisive = o
	}
}

// notifyUnknown reports, once an hour, that the probe has not been able to tell for long.
func (c *condition) notifyUnknown(t *turn, debounce Debounce) {
	if c.debounce.unknownFor(t.now) < debounce.UnknownAfter.Duration || t.now.Sub(c.unknownNotified) < time.Hour {
		return
	}
	c.unknownNotified = t.now
	t.notify(Notice{Kind: StillUnknown, Condition: c.name, Message: describe.StillUnknown(c.name, c.debounce.unknownFor(t.now), c.last.Message)})
}

// followReason adds the reason of a bad sample to the one for which the condition was set, once as
// many samples in a row have it as set a condition. Reasons add up until the condition is OK: each
// rule sets its taint once at most in that time, so that reasons that alternate make no more writes
// than there are rules.
func (c *condition) followReason(policy *Policy, debounce Debounce, o probes.Observation) {
	if c.debounce.Level > probes.OK && classOf(o) >= bad && (o.Certain || c.alike >= debounce.BadSamples) {
		c.addReason(policy, o.Reason)
	}
}

// addReason adds a reason that a rule for Degraded names.
func (c *condition) addReason(policy *Policy, reason string) {
	if reason == c.reason() || !policy.distinguishes(c.name, reason) || slices.Contains(strings.Fields(c.ruled), reason) {
		return
	}
	c.ruled = strings.TrimSpace(c.ruled + " " + reason)
}

// isFor reports whether a rule of the condition covers a reason that it has or has had since
// it was set. For Critical the reasons have graded the samples already.
func (c *condition) isFor(rule *Rule) bool {
	switch {
	case rule.Condition != c.name:
		return false
	case rule.Level > probes.Degraded || rule.Covers(c.reason()):
		return true
	}
	for reason := range strings.FieldsSeq(c.ruled) {
		if rule.Covers(reason) {
			return true
		}
	}
	return false
}
