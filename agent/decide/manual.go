package decide

import (
	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// meets reports whether a rule asks for its taint at the decided level.
func (c *condition) meets(rule *Rule) bool {
	isAtLevel := c.debounce.Level >= rule.Level && c.isFor(rule)
	if rule.Clear == ClearManual {
		return c.manual == awaiting || isAtLevel && c.manual == unset
	}
	return isAtLevel
}

// acknowledge takes in that somebody removed the taint that waited for that.
func (s *State) acknowledge(t *turn, c *condition, d DesiredTaint) {
	c.manual = unset
	if c.debounce.Level > probes.OK {
		c.manual = acknowledged
	}
	by := t.in.Node.LastWriter
	t.notify(Notice{Kind: TaintAcknowledged, Condition: c.name, Taint: d.Taint(), By: by, Message: describe.Acknowledged(by, d.Taint(), c.manual == acknowledged)})
}

// restoreManual takes over what the record says of such a taint. That it waits to be removed
// is believed only of a taint that the record calls ours, so that one that is not there was
// removed: no forged record sets a taint.
func (c *condition) restoreManual(policy *Policy, entry recordCondition, owned []taints.Pair) {
	c.manual = unset
	switch {
	case entry.Manual == awaiting && owns(policy, owned, func(r *Rule) bool { return r.Condition == c.name && r.Clear == ClearManual }):
		c.manual = awaiting
	case entry.Manual >= acknowledged && entry.Level > probes.OK:
		c.manual = acknowledged
	}
}

// settleManual forgets an acknowledgement when the condition is OK, a taint that waits when it
// is only observed, and everything when the configuration has no such rule any more.
func (c *condition) settleManual(policy *Policy, isObserved bool) {
	switch {
	case c.manual == acknowledged && c.debounce.Level == probes.OK, c.manual == awaiting && isObserved,
		c.manual != unset && !policy.hasManual(c.name):
		c.manual = unset
	}
}
