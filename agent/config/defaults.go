package config

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// builtIn is the Hash of the configuration of an agent that is given none.
const builtIn = "built-in"

// Default returns the configuration of an agent that is given none.
func Default() *Config { return HostSchema().Default() }

// Default returns the configuration of an agent that is given none. The
// defaults of a condition's section stand beside its type.
func (s Schema) Default() *Config {
	cfg := &Config{
		TypeMeta:      metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Mode:          decide.Enforce,
		Debounce:      defaultDebounce(2, 3),
		WriteBudget:   decide.WriteBudget{Burst: 3, Interval: seconds(2400)},
		Eviction:      Eviction{Cooldown: seconds(600), Interval: seconds(3600)},
		FleetBrake:    decide.FleetBrake{Percent: 40, MinPeers: 5},
		Startup:       decide.Startup{Timeout: seconds(600)},
		Repair:        Repair{After: seconds(600)},
		SoftRules:     []SoftRule{},
		Overrides:     []Override{},
		Maintenance:   defaultMaintenance(),
		StandInPrefix: taints.DefaultStandInPrefix,
		Heartbeat:     seconds(300),
		Hash:          builtIn,
	}
	for _, definition := range s {
		cfg.Conditions = append(cfg.Conditions, Condition{definition, definition.NewSection()})
	}
	cfg.Rules = cfg.defaultRules()
	return cfg
}

// defaultRules ask for the well-known NoSchedule taints. Nothing evicts unless
// the operator says so.
func (c *Config) defaultRules() []decide.Rule {
	rules := slices.DeleteFunc(c.Policy().BuiltInRules(), func(r decide.Rule) bool { return r.Level != probes.Degraded })
	for i := range rules {
		rules[i] = c.autoscaled(rules[i])
	}
	return rules
}

// maxRules is how many rules a file may have: one for Critical of each condition, and
// three for Degraded, each for other reasons.
func (c *Config) maxRules() int { return 4 * len(c.Conditions) }

// addDefaultRules adds the default rule of each condition and level that a file has no
// rule without reasons for. The rules of the file keep their places, by which errors name
// them.
func (c *Config) addDefaultRules() {
	if c.Rules != nil && len(c.Rules) == 0 {
		return // no taint at all
	}
	for _, rule := range c.defaultRules() {
		isRuled := slices.ContainsFunc(c.Rules, func(r decide.Rule) bool {
			return r.Condition == rule.Condition && r.Level == rule.Level && len(r.Reasons) == 0
		})
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
		return d.Condition == r.Condition && d.Level == r.Level && d.Taint == r.Taint
	})
}

// WithoutTaint returns the conditions for which no taint is ever set: those without a
// rule for Degraded.
func (c *Config) WithoutTaint() []probes.Condition {
	policy := c.Policy()
	return slices.DeleteFunc(c.Names(), func(name probes.Condition) bool { return policy.HasRule(name, probes.Degraded) })
}
