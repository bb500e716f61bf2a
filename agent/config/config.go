// Package config is the TaintletConfiguration file: its schema, defaults,
// strict decoding and validation.
package config

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
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

	// Conditions are those of the Schema, each with its section of the file.
	Conditions []Condition `json:"-"`

	// Rules say which taint each level of a condition asks for. A file that
	// has the list replaces all of it; an empty list asks for no taint.
	Rules       []Rule      `json:"rules"`
	WriteBudget WriteBudget `json:"writeBudget"`
	// Eviction bounds what rules for Critical may do.
	Eviction Eviction `json:"eviction"`
	// FleetBrake holds taints back that a large part of the fleet asks for.
	FleetBrake FleetBrake `json:"fleetBrake"`
	// StandInPrefix is the DNS prefix of the keys that stand in for pairs that
	// the control plane would delete.
	StandInPrefix string `json:"standInPrefix"`
	// Heartbeat is how often the Node's conditions are refreshed while nothing
	// changes, ±10 %. 0: never.
	Heartbeat metav1.Duration `json:"heartbeat"`

	// Hash tells configurations apart: the first digits of the SHA-256 of the
	// file, or "built-in".
	Hash string `json:"-"`
}

// Debounce configures when samples change the level of a condition.
type Debounce struct {
	// BadSamples of the last Samples must be bad before the condition is
	// Degraded, unless a sample is certain. 1 <= BadSamples <= Samples <= 32.
	BadSamples int `json:"badSamples"`
	Samples    int `json:"samples"`
	// ClearAfter (0 to 24h) is how long every sample must be good before the
	// condition is OK again. It doubles each time the condition is set again too
	// soon, up to MaxClearAfter (ClearAfter to 24h). What was added halves every
	// PenaltyHalfLife (1m to 168h).
	ClearAfter      metav1.Duration `json:"clearAfter"`
	MaxClearAfter   metav1.Duration `json:"maxClearAfter"`
	PenaltyHalfLife metav1.Duration `json:"penaltyHalfLife"`
	// CriticalAfter (0 to 1h) is how long every sample of a Degraded condition
	// must be critical before the condition is Critical.
	CriticalAfter metav1.Duration `json:"criticalAfter"`
	// UnknownAfter (1m to 24h) is how long the probe may be unable to tell
	// before a Critical condition steps down to Degraded and people are told.
	UnknownAfter metav1.Duration `json:"unknownAfter"`
}

// WriteBudget is a token bucket that meters clears, steps up to Critical and
// repairs of what others undid. Setting Degraded and stepping down from
// Critical need no token.
type WriteBudget struct {
	// Burst (1 to 100) is how many metered steps may come at the same time.
	Burst int `json:"burst"`
	// Interval (1s to 24h) is the time in which one more is allowed.
	Interval metav1.Duration `json:"interval"`
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
	Cooldown metav1.Duration `json:"cooldown"`
	// Interval (0 to 168h) is the least time between two evictions of one Node.
	Interval metav1.Duration `json:"interval"`
	// ControlPlane: Nodes of the control plane may evict too.
	ControlPlane bool `json:"controlPlane"`
}

// FleetBrake holds a new Degraded back while a large part of the fleet has the same
// condition: that is more likely a wrong configuration than the hosts' trouble. A
// taint that stands is not removed.
type FleetBrake struct {
	// Percent (0 to 100) of the sampled hosts, this one included, that brake.
	// 0: no brake.
	Percent int `json:"percent"`
	// MinPeers (1 to 12) is how many peers must have answered.
	MinPeers int `json:"minPeers"`
}

// Rule says which taint a level of a condition asks for.
type Rule struct {
	Condition probes.Condition `json:"condition"`
	Level     probes.Level     `json:"level"`
	Taint     Taint            `json:"taint"`
}

// Taint is what a rule puts on the Node.
type Taint struct {
	Key    string             `json:"key"`
	Value  string             `json:"value,omitempty"`
	Effect corev1.TaintEffect `json:"effect"`
}

// Pair is the taint's identity.
func (t Taint) Pair() taints.Pair { return taints.Pair{Key: t.Key, Effect: t.Effect} }

// Asks reports whether a rule asks for a taint at this level of the condition.
func (c *Config) Asks(condition probes.Condition, level probes.Level) bool {
	return slices.ContainsFunc(c.Rules, func(r Rule) bool { return r.Condition == condition && r.Level == level })
}

// Evicts reports whether taintlet evicts by this pair, here or on any other Node
// of the cluster.
func (c *Config) Evicts(p taints.Pair) bool {
	return p.Effect == corev1.TaintEffectNoExecute && c.Produces(p)
}

// Produces reports whether this configuration or a built-in rule can ask for
// the pair, itself or by a stand-in. No other pair is ever removed from a
// Node, whatever the record on it says: a kubelet may forge that annotation.
func (c *Config) Produces(p taints.Pair) bool {
	asksFor := func(pair taints.Pair) bool {
		return p == pair || p.StandsInFor(pair, c.StandInPrefix) || p.StandsInFor(pair, taints.DefaultStandInPrefix)
	}
	for _, rule := range c.Rules {
		if asksFor(rule.Taint.Pair()) {
			return true
		}
	}
	for rule := range c.builtIn() {
		if asksFor(rule.Taint.Pair()) {
			return true
		}
	}
	return false
}

// BuiltInRules are the rules that any release of taintlet knows without a
// configuration: the default ones and their NoExecute counterparts. A pair of
// theirs is recognized as ours even where the configuration dropped the rule.
func (c *Config) BuiltInRules() []Rule {
	return slices.Collect(c.builtIn())
}

// builtIn yields BuiltInRules one by one: Produces asks for them at each step.
func (c *Config) builtIn() iter.Seq[Rule] {
	return func(yield func(Rule) bool) {
		for rule := range c.wellKnown(probes.Degraded, corev1.TaintEffectNoSchedule) {
			if !yield(rule) {
				return
			}
		}
		c.wellKnown(probes.Critical, corev1.TaintEffectNoExecute)(yield)
	}
}

// defaultRules ask for the well-known NoSchedule taints. Nothing evicts unless
// the operator says so.
func (c *Config) defaultRules() []Rule {
	return slices.Collect(c.wellKnown(probes.Degraded, corev1.TaintEffectNoSchedule))
}

// wellKnown yields a rule for each condition that has a well-known key.
func (c *Config) wellKnown(level probes.Level, effect corev1.TaintEffect) iter.Seq[Rule] {
	return func(yield func(Rule) bool) {
		for _, condition := range c.Conditions {
			rule := Rule{condition.Name, level, Taint{Key: condition.TaintKey, Effect: effect}}
			if condition.TaintKey != "" && !yield(rule) {
				return
			}
		}
	}
}
