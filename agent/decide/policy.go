package decide

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Policy is the configuration of the decider. It is not changed after Step has used it: a
// configuration that is read again is a new Policy, even with equal values.
type Policy struct {
	// Hash tells configurations apart; empty: it is not shown.
	Hash string
	// Conditions are in the order in which they are shown.
	Conditions []Condition
	// Rules say which taint each level of a condition asks for.
	Rules []Rule
	// WriteBudget is the bucket of each condition, for clearing it and for its steps up to
	// Critical, so that no condition waits for another one. Setting Degraded and stepping down from
	// Critical need no token. Upkeep is the bucket of the Node, for writes that no change of a
	// condition asks for: operators who pause and resume wait less than a flapping condition.
	WriteBudget WriteBudget
	Upkeep      WriteBudget
	FleetBrake  FleetBrake
	Startup     Startup
	// EvictionInterval is the least time between two evictions of the Node.
	EvictionInterval time.Duration
	// ControlPlaneEvicts: Nodes of the control plane may evict too.
	ControlPlaneEvicts bool
	// StandInPrefix is the DNS prefix of the keys that stand in for pairs that the
	// control plane would delete.
	StandInPrefix string
	// Maintenance has the types of the Node conditions by which a Node is under
	// maintenance while one of them is True.
	Maintenance []string
	// RepairAfter is how long a fault that a repair cures must last before the host needs one.
	RepairAfter time.Duration
	// Heartbeat is how often the Node's conditions are refreshed while nothing
	// changes. 0: never.
	Heartbeat time.Duration
	// Elsewhere are the policies of other Nodes, and of this one with other labels: their pairs are
	// taintlet's as well.
	Elsewhere []*Policy
}

// Mode says whether decided taints are set.
type Mode string

// The modes.
const (
	// Enforce sets taints.
	Enforce Mode = "Enforce"
	// Observe decides and reports, but sets no taint.
	Observe Mode = "Observe"
)

// Condition is the part of a Policy for one condition.
type Condition struct {
	Name probes.Condition
	// TaintKey is the well-known key that the built-in rules ask for; empty: there is
	// no built-in rule.
	TaintKey string
	Debounce Debounce
	// BecomesCritical: its probe knows the level Critical.
	BecomesCritical bool
	// Reported: another program reports it, as a condition of the Node.
	Reported bool
	// AsksPeers: its probe asks the peers, so a good verdict before they are known proves little.
	AsksPeers bool
	// Repairable are the reasons of faults that a repair of the host cures.
	Repairable []string
	// Observed: it is decided and reported as always, and no taint of it is on the Node.
	Observed bool
}

// Duration is a time.Duration that files write as in "1m30s".
type Duration struct{ time.Duration }

// MarshalJSON writes the form of String.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads the form of String.
func (d *Duration) UnmarshalJSON(text []byte) (err error) {
	var written string
	if err := json.Unmarshal(text, &written); err != nil {
		return err
	}
	d.Duration, err = time.ParseDuration(written)
	return err
}

// Debounce configures when samples change the level of a condition.
type Debounce struct {
	// BadSamples of the last Samples must be bad before the condition is
	// Degraded, unless a sample is certain. 1 <= BadSamples <= Samples <= 32.
	BadSamples int `json:"badSamples" range:"1..32"`
	Samples    int `json:"samples" range:"1..32"`
	// ClearAfter (0 to 24h) is how long every sample must be good before the condition is OK again.
	// It doubles each time the condition is set again too soon, up to MaxClearAfter (ClearAfter to
	// 24h). The addition halves every PenaltyHalfLife (1m to 168h), which a file cannot change.
	ClearAfter      Duration `json:"clearAfter" range:"0s..24h"`
	MaxClearAfter   Duration `json:"maxClearAfter" range:"0s..24h"`
	PenaltyHalfLife Duration `json:"-"`
	// CriticalAfter (0 to 1h) is how long every sample of a Degraded condition
	// must be critical before the condition is Critical.
	CriticalAfter Duration `json:"criticalAfter" range:"0s..1h"`
	// UnknownAfter (1m to 24h) is how long the samples may be Unknown before a Critical condition
	// steps down to Degraded and an Event reports it. A file cannot change it.
	UnknownAfter Duration `json:"-"`
}

// WriteBudget is a token bucket.
type WriteBudget struct {
	// Burst is how many metered steps may come at the same time. A file cannot change it: an
	// incident with two relapses is cleared without a wait, and what flaps more waits for Interval.
	Burst int `json:"-"`
	// Interval is the time in which one more is allowed.
	Interval Duration `json:"interval" range:"1s..24h"`
}

// FleetBrake holds a new Degraded back while a large part of the fleet has the same condition: a
// wrong configuration is then more likely than trouble on each host. It removes no taint.
type FleetBrake struct {
	// Percent of the sampled hosts, this one included, that brake. 0: no brake.
	Percent int `json:"percent" range:"0..100"`
	// MinPeers is how many peers must have answered. A file cannot change it: fewer are no
	// sample of a fleet, and an agent asks at most 12.
	MinPeers int `json:"-"`
}

// Startup is about Nodes that register with a taint, so that no pod lands before the first
// verdict.
type Startup struct {
	// Taint is the key with which kubelets register their Nodes (--register-with-taints),
	// with the effect NoSchedule or NoExecute. The agent removes that taint once, and never
	// sets it. Empty: there is none.
	Taint string `json:"taint"`
	// Timeout is how long the taint may stay until an Event reports it. A file cannot change it:
	// the first verdict removes the taint, and takes seconds.
	Timeout Duration `json:"-"`
}

// Condition returns the policy's condition of that name; false if it has none.
func (p *Policy) Condition(name probes.Condition) (Condition, bool) {
	for i := range p.Conditions {
		if p.Conditions[i].Name == name {
			return p.Conditions[i], true
		}
	}
	return Condition{}, false
}

// debounce returns the configured debounce of a condition of the policy.
func (p *Policy) debounce(name probes.Condition) Debounce {
	for i := range p.Conditions {
		if p.Conditions[i].Name == name {
			return p.Conditions[i].Debounce
		}
	}
	return Debounce{}
}

// names returns the names of the conditions.
func (p *Policy) names() []probes.Condition {
	names := make([]probes.Condition, len(p.Conditions))
	for i := range p.Conditions {
		names[i] = p.Conditions[i].Name
	}
	return names
}

// Evicts reports whether taintlet evicts by this pair, here or on any other Node
// of the cluster.
func (p *Policy) Evicts(pair taints.Pair) bool {
	return pair.Effect == taints.NoExecute && p.Produces(pair)
}

// Produces reports whether this policy or a built-in rule can ask for the pair, itself or by a
// stand-in. No other pair is ever removed from a Node, even if its record names it: a kubelet may
// forge that annotation.
func (p *Policy) Produces(pair taints.Pair) bool {
	isFor := func(ruled taints.Pair) bool {
		return pair == ruled || pair.StandsInFor(ruled, p.StandInPrefix) || pair.StandsInFor(ruled, taints.DefaultStandInPrefix)
	}
	for i := range p.Rules { // what comes before Degraded has no stand-in
		if ruled := p.Rules[i].Taint.Pair(); pair == ruled || p.Rules[i].Level > probes.OK && isFor(ruled) {
			return true
		}
	}
	for i := range p.Conditions { // those of BuiltInRules, also as a configuration for cluster-autoscaler had them
		for _, effect := range [2]taints.Effect{taints.NoSchedule, taints.NoExecute} {
			ruled := taints.Pair{Key: p.Conditions[i].TaintKey, Effect: effect}
			if ruled.Key != "" && (isFor(ruled) || pair.StandsInFor(ruled, taints.AutoscalerPrefix)) {
				return true
			}
		}
	}
	return slices.ContainsFunc(p.Elsewhere, func(other *Policy) bool { return other.Produces(pair) })
}

// BuiltInRules are the rules that any release of taintlet knows without a configuration: the
// default ones and their NoExecute counterparts. Their pairs are recognized as taintlet's even if
// the configuration dropped the rule.
func (p *Policy) BuiltInRules() (rules []Rule) {
	for _, rule := range []Rule{
		{Level: probes.Degraded, Taint: Taint{Effect: taints.NoSchedule}}, {Level: probes.Critical, Taint: Taint{Effect: taints.NoExecute}},
	} {
		for _, condition := range p.Conditions {
			if rule.Condition, rule.Taint.Key = condition.Name, condition.TaintKey; rule.Taint.Key != "" {
				rules = append(rules, rule)
			}
		}
	}
	return rules
}

// Rule says which taint a level of a condition asks for.
type Rule struct {
	Condition probes.Condition `json:"condition"`
	// Level is the lowest level at which the rule asks for its taint. OK: it asks before Degraded,
	// with the effect PreferNoSchedule or NoSchedule; a condition has at most one such rule.
	Level probes.Level `json:"level"`
	// Severity (1 to 100, in a file 51 to 100) is the least severity of the samples; 0: any. 50 is the threshold
	// of Degraded. Of several rules for one pair, the rule with the highest severity gives the value.
	Severity int `json:"severity,omitempty" range:"51..100"`
	// Reasons are those for which the rule asks for its taint; none: all. For Critical they
	// also say which samples are critical: see Policy.graded.
	Reasons []string `json:"reasons,omitempty"`
	Taint   Taint    `json:"taint"`
	// Clear says who removes the taint.
	Clear Clearing `json:"clear,omitempty"`
}

// Clearing says who removes the taint of a rule.
type Clearing string

const (
	// ClearAutomatic means that taintlet removes it when the condition is OK again.
	ClearAutomatic Clearing = ""
	// ClearManual means that an operator removes it, and so acknowledges the fault. taintlet does
	// not set it again before the condition has been OK.
	ClearManual Clearing = "manual"
)

// Taint is what a rule puts on the Node.
type Taint struct {
	Key    string        `json:"key,omitempty"`
	Value  string        `json:"value,omitempty"`
	Effect taints.Effect `json:"effect"`
}

// Pair is the taint's identity.
func (t Taint) Pair() taints.Pair { return taints.Pair{Key: t.Key, Effect: t.Effect} }

// IsGraver reports whether the rule only gives another value to the taint of a condition that is
// Degraded, from its severity on.
func (r *Rule) IsGraver() bool { return r.Level > probes.OK && r.Severity > 0 }

// Covers reports whether the rule asks for its taint for a reason of its condition.
func (r *Rule) Covers(reason string) bool {
	return len(r.Reasons) == 0 || slices.Contains(r.Reasons, reason)
}

// HasRule reports whether a rule asks for a taint at this level of the condition, at least for
// one reason.
func (p *Policy) HasRule(condition probes.Condition, level probes.Level) bool {
	_, found := p.rule(condition, level)
	return found
}

// rule returns the first rule for a level of a condition; false if there is none. There is
// one for Critical, and one before Degraded, at most.
func (p *Policy) rule(condition probes.Condition, level probes.Level) (*Rule, bool) {
	for i := range p.Rules {
		if rule := &p.Rules[i]; rule.Condition == condition && rule.Level == level {
			return rule, true
		}
	}
	return nil, false
}

// distinguishes reports whether a rule for Degraded of the condition names the reason.
func (p *Policy) distinguishes(condition probes.Condition, reason string) bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool {
		return r.Condition == condition && r.Level == probes.Degraded && slices.Contains(r.Reasons, reason)
	})
}

// RulesFor returns the rules that ask for their taints at the level of a sample, if its
// condition has that level. Levels add up: at Critical the taint of Degraded stays.
func (p *Policy) RulesFor(o probes.Observation) (rules []Rule) {
	o = p.graded(o)
	for _, rule := range p.Rules {
		if rule.Condition != o.Condition || rule.Level > o.Level || rule.Severity > o.Severity || !rule.Covers(o.Reason) {
			continue
		}
		if i := slices.IndexFunc(rules, func(r Rule) bool { return r.Taint.Pair() == rule.Taint.Pair() }); i < 0 {
			rules = append(rules, rule)
		} else if rule.Severity > rules[i].Severity {
			rules[i] = rule
		}
	}
	return rules
}

// graded returns a bad sample at the level that the rule for Critical gives to its reason: only
// what the rule covers is critical. Of a condition whose probe does not know that level, all that
// the rule names is. Of a condition that another program reports, all that the rule covers is.
func (p *Policy) graded(o probes.Observation) probes.Observation {
	if o.Level < probes.Degraded {
		return o
	}
	rule, found := p.rule(o.Condition, probes.Critical)
	if !found {
		return o
	}
	condition, _ := p.Condition(o.Condition)
	switch covers := rule.Covers(o.Reason); {
	case !covers:
		o.Level = probes.Degraded
	case !condition.BecomesCritical && (condition.Reported || len(rule.Reasons) > 0):
		o.Level = probes.Critical
	}
	return o
}
