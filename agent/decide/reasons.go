package decide

import (
	"slices"
	"strings"

	"github.com/taintlet/taintlet/probes"
)

// next takes in a sample. One with another reason ends the row, an Unknown one says nothing.
func (r sameReason) next(o probes.Observation) sameReason {
	switch {
	case o.Level == probes.Unknown:
		return r
	case o.Reason != r.reason:
		return sameReason{o.Reason, 1}
	}
	r.count++
	return r
}

// followReason notes the reason of a bad sample besides the one for which the condition was
// set, once as many samples in a row have it as set a condition. Reasons add up until the
// condition is OK: each rule sets its taint once at most in that time, so that reasons that
// alternate make no more writes than there are rules.
func (c *condition) followReason(policy *Policy, debounce Debounce, o probes.Observation) {
	c.latest = c.latest.next(o)
	if c.debounce.Level > probes.OK && classOf(o) >= bad && (o.Certain || c.latest.count >= debounce.BadSamples) {
		c.addReason(policy, o.Reason)
	}
}

// addReason adds a reason that a rule for Degraded names.
func (c *condition) addReason(policy *Policy, reason string) {
	if reason == c.reason || !policy.distinguishes(c.name, reason) || slices.Contains(strings.Fields(c.ruled), reason) {
		return
	}
	c.ruled = strings.TrimSpace(c.ruled + " " + reason)
}

// enterReason takes over the reason for which the condition has its new level.
func (c *condition) enterReason(policy *Policy, reason string) {
	before := c.reason
	c.reason = reason
	if c.debounce.Level == probes.OK {
		c.reason, c.ruled = "", ""
		return
	}
	c.addReason(policy, before)
}

// isFor reports whether a rule of the condition covers a reason that it has or has had since
// it was set. For Critical the reasons have graded the samples already.
func (c *condition) isFor(rule *Rule) bool {
	switch {
	case rule.Condition != c.name:
		return false
	case rule.Level > probes.Degraded || rule.Covers(c.reason):
		return true
	}
	for reason := range strings.FieldsSeq(c.ruled) {
		if rule.Covers(reason) {
			return true
		}
	}
	return false
}
