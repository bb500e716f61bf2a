// Package config is the TaintletConfiguration file: its schema, defaults,
// strict decoding and validation.
package config

import (
	"cmp"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/network/verdict"
)

// The schema's name. A file that says another one is refused.
const (
	APIVersion = "taintlet.dev/v1alpha1"
	Kind       = "TaintletConfiguration"
)

// Config is the whole configuration file. The zero value is not useful: start
// from Default, or from the Default of a Schema.
type Config struct {
	metav1.TypeMeta `json:",inline"`

	// Mode is Enforce, or Observe: taints are decided and reported, and none is on the Node.
	Mode decide.Mode `json:"mode"`
	// Debounce is that of all conditions, but for the fields that a condition's section sets.
	Debounce decide.Debounce `json:"debounce"`
	// Conditions are those of the Schema, each with its section of the file, and then those
	// that others report, which the file lists.
	Conditions []Condition `json:"-"`

	// Rules say which taint each level of a condition asks for. A rule of a file
	// without reasons replaces the default of its condition and level; one with reasons
	// is added to it. A rule with the effect NoTaint, and an empty list, switch defaults
	// off.
	Rules []decide.Rule `json:"rules"`
	// SoftRules ask for taints before a condition is Degraded, at most one for each.
	SoftRules   []SoftRule         `json:"softRules"`
	WriteBudget decide.WriteBudget `json:"writeBudget"`
	// Eviction bounds what rules for Critical may do.
	Eviction Eviction `json:"eviction"`
	// FleetBrake holds taints back that a large part of the fleet asks for.
	FleetBrake decide.FleetBrake `json:"fleetBrake"`
	// Startup is about Nodes that register with a taint.
	Startup decide.Startup `json:"startup"`
	// Repair says when HostRepairNeeded becomes True.
	Repair Repair `json:"repair"`
	// Maintenance says by which Node conditions a Node is under maintenance.
	Maintenance Maintenance `json:"maintenance"`
	// Autoscaler is the autoscaler of the cluster, ClusterAutoscaler or empty. The
	// default rules, and the default of StandInPrefix, use keys that it ignores.
	Autoscaler string `json:"autoscaler"`
	// StandInPrefix is the DNS prefix of the keys that stand in for pairs that
	// the control plane would delete.
	StandInPrefix string `json:"standInPrefix"`
	// Heartbeat is how often the Node's conditions are refreshed while nothing
	// changes, ±10 %. 0: never.
	Heartbeat decide.Duration `json:"heartbeat"`

	// Overrides are what the file sets differently for some Nodes: see For.
	Overrides []Override `json:"overrides"`

	// Hash tells configurations apart: the first digits of the SHA-256 of the
	// file, or "built-in".
	Hash string `json:"-"`
	// Override names the override that is merged into this configuration, by its place and
	// its labels; empty: none.
	Override string `json:"-"`
	// nodeSelector has the labels of that override. family are the file's own configuration
	// and those that its overrides make.
	nodeSelector map[string]string
	family       []*Config
}

// Eviction bounds what rules for Critical may do: NoExecute deletes every pod
// that does not tolerate it, whatever its PodDisruptionBudget says.
type Eviction struct {
	// Slots (0 to 100) is how many Nodes of the cluster may evict at the same
	// time. The installer made that many Leases: taintlet-evict-0 and so on. 0:
	// no Node ever evicts.
	Slots int `json:"slots"`
	// Cooldown (1s to 24h) is how long a Node keeps its slot after its NoExecute
	// taints are gone. A silent Node's Lease must not have moved for that long
	// before another Node may take it.
	Cooldown decide.Duration `json:"cooldown"`
	// Interval (0 to 168h) is the least time between two evictions of one Node.
	Interval decide.Duration `json:"interval"`
	// ControlPlane: Nodes of the control plane may evict too.
	ControlPlane bool `json:"controlPlane"`
}

// Policy returns what the configuration asks of the decider. Each call makes a new one.
func (c *Config) Policy() *decide.Policy {
	policy := c.ownPolicy()
	for _, other := range c.family {
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
		StandInPrefix:      c.StandInPrefix,
		Maintenance:        c.Maintenance.Conditions,
		RepairAfter:        c.Repair.After.Duration,
		Heartbeat:          c.Heartbeat.Duration,
	}
	for _, condition := range c.Conditions {
		_, isReported := condition.Section.(*Reported)
		policy.Conditions = append(policy.Conditions, decide.Condition{
			Name: condition.Name, TaintKey: condition.TaintKey, Debounce: condition.Common().Debounce, AsksPeers: condition.Name == verdict.Condition,
			BecomesCritical: condition.BecomesCritical, Reported: isReported,
			Repairable: condition.Repairable, Observed: cmp.Or(condition.Common().Mode, c.Mode) == decide.Observe,
		})
	}
	if c.Hash != builtIn { // of which nobody asks whether it is the newest
		policy.Hash = c.Hash
	}
	return policy
}

// rules returns those that the decider follows.
func (c *Config) rules() (rules []decide.Rule) {
	for _, rule := range c.Rules {
		switch {
		case switchesOff(rule):
		case rule.Taint.ValueFrom == FromSeverity:
			for _, severity := range []int{0, 75, 100} { // Degraded begins at 50
				rule.Severity, rule.Taint.Value = severity, strconv.Itoa(max(50, severity))
				rules = append(rules, rule)
			}
		default:
			rules = append(rules, rule)
		}
	}
	for _, soft := range c.SoftRules {
		rules = append(rules, decide.Rule{Condition: soft.Condition, Level: probes.OK, Severity: soft.Severity, Taint: soft.Taint})
	}
	return rules
}

// SoftRule asks for a taint before a condition is Degraded: a soft one, by which pods
// prefer other Nodes.
type SoftRule struct {
	Condition probes.Condition `json:"condition"`
	// Severity (1 to 49) is from which on a sample is bad for this rule. 50 is the threshold
	// of Degraded.
	Severity int `json:"severity"`
	// Taint has the effect PreferNoSchedule or NoSchedule, and is written as asked.
	Taint decide.Taint `json:"taint"`
}

// FromSeverity is a Taint's ValueFrom that makes the severity its value.
const FromSeverity = "severity"

// Names returns the names of the conditions in the order in which they are shown.
func (c *Config) Names() []probes.Condition {
	names := make([]probes.Condition, len(c.Conditions))
	for i := range c.Conditions {
		names[i] = c.Conditions[i].Name
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

// Clone returns a copy whose fields and sections may be changed without
// changing the original.
func (c *Config) Clone() *Config {
	copied := *c
	copied.Conditions = append([]Condition(nil), c.Conditions...)
	for i := range copied.Conditions {
		copied.Conditions[i].Section = clone(copied.Conditions[i].Section)
	}
	copied.Rules, copied.SoftRules = slices.Clone(c.Rules), slices.Clone(c.SoftRules)
	return &copied
}

// Maintenance says when a Node is under maintenance.
type Maintenance struct {
	// Conditions are the types of Node conditions, at most maxMaintenance. While one of
	// them is True, no taint is set, and peers leave the Node out. Empty: no Node is ever
	// under maintenance.
	Conditions []string `json:"conditions"`
}

// Repair says when the Node condition HostRepairNeeded becomes True.
type Repair struct {
	// After (0 to 24h) is how long each sample must find a fault that a reboot or a
	// replacement of the host cures.
	After decide.Duration `json:"after"`
}
