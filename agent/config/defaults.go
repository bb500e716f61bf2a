package config

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Default returns the configuration of an agent that is given none.
func Default() *Config { return HostSchema().Default() }

// Default returns the configuration of an agent that is given none. The
// defaults of a condition's section stand beside its type.
func (s Schema) Default() *Config {
	cfg := &Config{
		TypeMeta:      metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		WriteBudget:   decide.WriteBudget{Burst: 6, Interval: seconds(600)},
		Eviction:      Eviction{Cooldown: seconds(600), Interval: seconds(3600)},
		FleetBrake:    decide.FleetBrake{Percent: 40, MinPeers: 5},
		Startup:       decide.Startup{Timeout: seconds(600)},
		Repair:        Repair{After: seconds(600), Reasons: map[string]decide.Duration{}},
		SoftRules:     []decide.SoftRule{},
		Maintenance:   defaultMaintenance(),
		StandInPrefix: taints.DefaultStandInPrefix,
		Heartbeat:     seconds(300),
		Hash:          "built-in",
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
