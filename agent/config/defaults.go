package config

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
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
		TypeMeta:    metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Mode:        decide.Enforce,
		Debounce:    defaultDebounce(2, 3),
		WriteBudget: decide.WriteBudget{Burst: 3, Interval: seconds(2400)},
		Eviction:    Eviction{Cooldown: seconds(600), Interval: seconds(3600)},
		FleetBrake:  decide.FleetBrake{Percent: 40, MinPeers: 5},
		Startup:     decide.Startup{Timeout: seconds(600)},
		Repair:      Repair{After: seconds(600)},
		Overrides:   []Override{},
		Reported:    []*Reported{},
		// The lifecycle conditions of Kubernetes (KEP-5683, in
		// staging/src/k8s.io/api/core/v1/types.go since 1.37) that say that a Node is disturbed
		// now. MaintenancePlanned is none of them: a plan that is made weeks ahead would leave the
		// Node without taints until then.
		Maintenance: Maintenance{Conditions: []string{"DrainInProgress", decide.Drained, "MaintenanceInProgress", "GracefulNodeShutdownInProgress"}},
		Keys:        WellKnownKeys,
		KeyPrefix:   taints.DefaultStandInPrefix,
		Heartbeat:   seconds(300),
		Hash:        builtIn,
	}
	for _, definition := range s {
		cfg.Conditions = append(cfg.Conditions, Condition{definition, definition.NewSection()})
	}
	cfg.Rules = cfg.defaultRules()
	return cfg
}

// defaultRules ask for NoSchedule taints. Nothing evicts unless
// the operator says so.
func (c *Config) defaultRules() []decide.Rule {
	rules := slices.DeleteFunc(c.Policy().BuiltInRules(), func(r decide.Rule) bool { return r.Level != probes.Degraded })
	for i := range rules {
		if c.Keys == OwnKeys {
			rules[i].Taint.Key = taints.StandInFor(rules[i].Taint.Pair(), c.KeyPrefix).Key
		}
	}
	return rules
}

// early is a Section of which a quantity can set a taint before its condition is Degraded.
type early interface{ early() float64 }

// earlyRules are the rules for early taints, with keys under a prefix, of the sections for which
// isOn. Pods prefer other Nodes then; a Node where they must not start is one whose threshold is
// higher. The probes report the severity that the rules have exactly at earlyPercent.
func (c *Config) earlyRules(prefix string, isOn func(early) bool) (rules []decide.Rule) {
	for _, condition := range c.Conditions {
		if section, can := condition.Section.(early); can && isOn(section) {
			key := taints.StandInFor(taints.Pair{Key: condition.TaintKey}, prefix).Key + "-early"
			rules = append(rules, decide.Rule{Condition: condition.Name, Level: probes.OK, Severity: trend.EarlySeverity, Taint: decide.Taint{Key: key, Effect: taints.PreferNoSchedule}})
		}
	}
	return rules
}

// maxRules is how many rules a file may have: one for Critical of each condition, three for
// Degraded, each for other reasons, and two values.
func (c *Config) maxRules() int { return 6 * len(c.Conditions) }

// addDefaultRules adds the default rule of each condition and level that a file has no
// rule without reasons for. The rules of the file keep their places, by which errors name
// them.
func (c *Config) addDefaultRules() {
	if c.Rules != nil && len(c.Rules) == 0 {
		return // no taint at all
	}
	for _, rule := range c.defaultRules() {
		isRuled := slices.ContainsFunc(c.Rules, func(r decide.Rule) bool {
			return r.Condition == rule.Condition && r.Level == rule.Level && len(r.Reasons) == 0 && !r.IsGraver()
		})
		if !isRuled && len(c.Rules) < c.maxRules() {
			c.Rules = append(c.Rules, rule)
		}
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
