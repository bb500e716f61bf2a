// Package config is the TaintletConfiguration file: its schema, defaults, strict decoding and validation.
package config

import (
	"cmp"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/probes/trend"
	"github.com/taintlet/taintlet/taints"
)

// The schema's name. A file that says another one is refused.
const (
	APIVersion = "taintlet.dev/v1alpha1"
	Kind       = "TaintletConfiguration"
)

// Config is the whole configuration file, on top of Default.
type Config struct {
	metav1.TypeMeta `json:",inline"`

	// Mode is Enforce, or Observe: taints are decided and reported, and none is on the Node.
	Mode decide.Mode `json:"mode"`
	// Debounce is that of all conditions, but for the fields that a condition's section sets.
	Debounce Debounce `json:"debounce"`
	// Conditions are those of the Schema, each with its section of the file, and then those that
	// other programs report, which the file lists.
	Conditions []Condition `json:"-"`
	Reported   []*Reported `json:"conditions"`

	// Rules say which taint each level of a condition asks for. A rule of a file without reasons
	// replaces the default of its condition and level; one with reasons is added to it. A rule with
	// the effect NoTaint, and an empty list, switch defaults off. SoftRules ask for early taints.
	Rules     []decide.Rule `json:"rules"`
	SoftRules []decide.Rule `json:"-"`
	// WriteBudget bounds how often a condition changes the Node.
	WriteBudget decide.WriteBudget `json:"writeBudget"`
	// Eviction bounds rules for Critical: NoExecute deletes every pod that does not tolerate it,
	// against any PodDisruptionBudget.
	Eviction struct {
		// Slots is how many Nodes of the cluster may evict at the same time. The installer made
		// that many Leases: taintlet-evict-0 and so on. 0: no Node ever evicts.
		Slots int `json:"slots" range:"0..100"`
		// Cooldown is how long a Node keeps its slot after its NoExecute taints are gone. A silent
		// Node's Lease must not have moved for that long before another Node may take it.
		Cooldown decide.Duration `json:"cooldown" range:"1s..24h"`
		// Interval is the least time between two evictions of one Node.
		Interval decide.Duration `json:"interval" range:"0s..168h"`
		// ControlPlane: Nodes of the control plane may evict too.
		ControlPlane bool `json:"controlPlane"`
	} `json:"eviction"`
	// FleetBrake holds taints back that a large part of the fleet asks for.
	FleetBrake decide.FleetBrake `json:"fleetBrake"`
	// Startup is about Nodes that register with a taint.
	Startup decide.Startup `json:"startup"`
	Repair  struct {
		// After is how long each sample must find a fault that a reboot or a replacement of the
		// host cures, before the Node condition HostRepairNeeded becomes True.
		After decide.Duration `json:"after" range:"0s..24h"`
	} `json:"repair"`
	Maintenance struct {
		// Conditions are types of Node conditions. While one of them is True, no taint is set, and
		// peers leave the Node out.
		Conditions []string `json:"conditions"`
	} `json:"maintenance"`
	// Keys are those of the default rules: WellKnown or Own. KeyPrefix is the DNS prefix of own
	// keys, and of those that stand in for well-known keys that the control plane would delete.
	Keys      Keys   `json:"keys"`
	KeyPrefix string `json:"keyPrefix"`
	// Heartbeat is how often unchanged Node conditions are refreshed, ±10 %. 0: never.
	// taintlet cleanup stale waits for a day: there are two to miss.
	Heartbeat decide.Duration `json:"heartbeat" range:"0,1m..8h"`

	// Overrides change the configuration of some Nodes: see For.
	Overrides []Override `json:"overrides"`

	// Hash tells configurations apart: the HashOf the file, or "built-in".
	Hash string `json:"-"`
	// Override names the override that is merged into this configuration, by its place and
	// its labels, which nodeSelector has; empty: none.
	Override     string `json:"-"`
	nodeSelector map[string]string
	// Family are the file's own configuration, and then those that its overrides make.
	Family []*Config `json:"-"`
}

// Keys says which keys the default rules have: those of Kubernetes, which DaemonSets tolerate, or own
// ones with KeyPrefix, which no controller of Kubernetes knows.
type Keys string

// The values of Keys.
const (
	WellKnownKeys Keys = "WellKnown"
	OwnKeys       Keys = "Own"
)

// Policy returns the part of the configuration for the decider. Each call makes a new one.
func (c *Config) Policy() *decide.Policy {
	policy := c.ownPolicy()
	// Early taints of other configurations are ours as well.
	policy.Elsewhere = []*decide.Policy{{Rules: append(c.earlyRules(c.KeyPrefix, true), c.earlyRules(taints.DefaultStandInPrefix, true)...)}}
	for _, other := range c.Family {
		if other != c {
			policy.Elsewhere = append(policy.Elsewhere, other.ownPolicy())
		}
	}
	return policy
}

// ownPolicy is Policy without those of other overrides.
func (c *Config) ownPolicy() *decide.Policy {
	policy := &decide.Policy{
		Rules:              c.rules(),
		WriteBudget:        c.WriteBudget,
		Upkeep:             decide.WriteBudget{Burst: 2 * c.WriteBudget.Burst, Interval: decide.Duration{Duration: c.WriteBudget.Interval.Duration / 4}},
		FleetBrake:         c.FleetBrake,
		Startup:            c.Startup,
		EvictionInterval:   c.Eviction.Interval.Duration,
		ControlPlaneEvicts: c.Eviction.ControlPlane,
		StandInPrefix:      c.KeyPrefix,
		Maintenance:        c.Maintenance.Conditions,
		RepairAfter:        c.Repair.After.Duration,
		Heartbeat:          c.Heartbeat.Duration,
	}
	for _, condition := range c.Conditions {
		_, isReported := condition.Section.(*Reported)
		policy.Conditions = append(policy.Conditions, decide.Condition{
			Name: condition.Name, TaintKey: condition.TaintKey, Debounce: condition.Common().Debounce.Debounce, AsksPeers: condition.Name == verdict.Condition,
			BecomesCritical: condition.BecomesCritical, Reported: isReported,
			Repairable: condition.Repairable, Observed: cmp.Or(condition.Common().Mode, c.Mode) == decide.Observe,
		})
	}
	if c.Hash != "built-in" { // of which nobody asks whether it is the newest
		policy.Hash = c.Hash
	}
	return policy
}

// earlyRules are the rules for early taints, with keys under a prefix, of the sections whose
// earlyPercent is set, or of all. Pods prefer other Nodes then; a Node where they must not start is
// one whose threshold is higher. The probes report the severity that the rules have exactly at
// earlyPercent.
func (c *Config) earlyRules(prefix string, all bool) (rules []decide.Rule) {
	for _, condition := range c.Conditions {
		for _, m := range members(reflect.ValueOf(condition.Section).Elem()) {
			if m.name == "earlyPercent" && (all || m.value.Float() > 0) {
				key := taints.StandInFor(taints.Pair{Key: condition.TaintKey}, prefix).Key + taints.EarlySuffix
				rules = append(rules, decide.Rule{Condition: condition.Name, Level: probes.OK, Severity: trend.EarlySeverity, Taint: decide.Taint{Key: key, Effect: taints.PreferNoSchedule}})
			}
		}
	}
	return rules
}

// WithoutTaint returns the conditions for which no taint is ever set: those without a rule for Degraded.
func (c *Config) WithoutTaint() []probes.Condition {
	policy := c.Policy()
	return slices.DeleteFunc(c.Names(), func(name probes.Condition) bool { return policy.HasRule(name, probes.Degraded) })
}

// Names returns the names of the conditions in the order in which they are shown.
func (c *Config) Names() (names []probes.Condition) {
	for i := range c.Conditions {
		names = append(names, c.Conditions[i].Name)
	}
	return names
}

// Condition returns the condition of that name; false if there is none.
func (c *Config) Condition(name probes.Condition) (Condition, bool) {
	for _, condition := range c.Conditions {
		if condition.Name == name {
			return condition, true
		}
	}
	return Condition{}, false
}
