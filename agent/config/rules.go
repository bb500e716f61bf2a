package config

import (
	"slices"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// maxRules is how many rules a file may have: one for Critical of each condition, and
// three for Degraded, each for other reasons.
func (c *Config) maxRules() int { return 4 * len(c.Conditions) }

// addDefaultRules adds the default rule of each condition and level that a file has no
// rule for. The rules of the file keep their places, by which errors name them.
func (c *Config) addDefaultRules() {
	if c.Rules != nil && len(c.Rules) == 0 {
		return // no taint at all
	}
	for _, rule := range c.defaultRules() {
		isRuled := slices.ContainsFunc(c.Rules, func(r decide.Rule) bool { return r.Condition == rule.Condition && r.Level == rule.Level })
		if !isRuled && len(c.Rules) < c.maxRules() {
			c.Rules = append(c.Rules, rule)
		}
	}
}

// ClusterAutoscaler is the autoscaler that counts a Node as unready for the well-known
// taints of disk and network. Above 45 % of such Nodes it stops.
const ClusterAutoscaler = "cluster-autoscaler"

// autoscaled returns a default rule as the autoscaler of the cluster needs it.
func (c *Config) autoscaled(rule decide.Rule) decide.Rule {
	if c.Autoscaler == ClusterAutoscaler && taints.IsUnreadyToAutoscaler(rule.Taint.Key) {
		rule.Taint.Key = taints.StandInFor(rule.Taint.Pair(), taints.AutoscalerPrefix).Key
	}
	return rule
}

// addDefaultPrefix sets the prefix of stand-ins that the autoscaler of the cluster needs,
// unless the file has one.
func (c *Config) addDefaultPrefix(isGiven bool) {
	if c.Autoscaler == ClusterAutoscaler && !isGiven {
		c.StandInPrefix = taints.AutoscalerPrefix
	}
}

// isDefaultRule reports whether a file need not have the rule.
func (c *Config) isDefaultRule(r decide.Rule) bool {
	return slices.ContainsFunc(c.defaultRules(), func(d decide.Rule) bool {
		return d.Condition == r.Condition && d.Level == r.Level && d.Taint == r.Taint && len(r.Reasons) == 0
	})
}

// WithoutTaint returns the conditions for which no taint is ever set: those without a
// rule for Degraded.
func (c *Config) WithoutTaint() []probes.Condition {
	policy := c.Policy()
	return slices.DeleteFunc(c.Names(), func(name probes.Condition) bool { return policy.Asks(name, probes.Degraded) })
}
