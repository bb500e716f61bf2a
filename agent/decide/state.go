// Package decide turns the samples of the probes into the taints, conditions and annotations that
// are desired on the Node. It has no clock, does no I/O and logs nothing: the same Step runs in
// production, in tests and in a simulator.
package decide

import (
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// State is everything that Step remembers. It is a value: Step returns a new
// one and leaves the old one as it was.
type State struct {
	boot       Boot
	conditions conditions
	// upkeep meters the writes that no condition asks for: repairs, the end of a pause, lower
	// values, and the removal of the start-up taint.
	upkeep bucket
	active active
	ledger ledger
	// maintenance is the type of the Node condition by which the Node is under maintenance, which
	// stops additions for all conditions; empty: it is not.
	maintenance string
	eviction    eviction
	writes      conditionWrites
	startup     startup
	// repairEndedAt is when the Node most recently said that its host needs a repair, and it
	// did not.
	repairEndedAt time.Time
	keep          keepFailure
}

// New returns the State of an agent that has just started and seen nothing.
// The name tells this process from all others.
func New(boot Boot, name string) State {
	return State{boot: boot, active: active{name: name}}
}

// turn is one call of Step: the inputs of its parts, and their decisions.
type turn struct {
	policy *Policy
	in     Inputs
	now    time.Time
	Decision
}

// notify adds a notice. Its kind is its reason unless there is another one.
func (t *turn) notify(n Notice) {
	if n.Reason == "" && n.Kind != LevelChanged { // which has that of its sample
		n.Reason = string(n.Kind)
	}
	t.Notices = append(t.Notices, n)
}

// eviction is what a State knows of evictions of this Node.
type eviction struct {
	// at is when a NoExecute taint was most recently decided.
	at time.Time
	// waits: people know that an eviction waits for a slot.
	waits bool
}

// startup is what a State knows of the taint with which its Node has registered.
type startup struct {
	// since is when this process first saw the taint on this Node object; zero: the Node
	// does not start.
	since time.Time
	// heard is the number of rounds after which the peers were asked twice since this process
	// first knew one; 0: it knows none.
	heard uint64
	// freed is the UID of the Node object from which the taint was removed. It is removed once: if
	// it comes back, another program has set it.
	freed string
	// isGone: the removal has landed.
	isGone bool
	// notified: people know that the taint stays for too long.
	notified bool
}

// Kind of a Notice; also the reason of its Event.
type Kind string

// The kinds of Notices.
const (
	LevelChanged   Kind = "LevelChanged"
	TaintLost      Kind = "TaintLost"
	TaintSetAgain  Kind = "TaintSetAgain"
	TaintContested Kind = "TaintContested"
	TaintVetoed    Kind = "TaintVetoed"
	StillUnknown   Kind = "ConditionStillUnknown"
	// KeepPolicyFails: the admission policy is installed, and does not keep a taint.
	KeepPolicyFails Kind = "KeepPolicyFails"
	RecordRefused   Kind = "RecordRefused"
	Active          Kind = "AgentActive"
	Paused          Kind = "TaintsPaused"
	Resumed         Kind = "TaintsResumed"
	Observed        Kind = "TaintsObserved"
	Enforced        Kind = "TaintsEnforced"
	EvictionWaits   Kind = "EvictionWaitsForSlot"
	TaintBraked     Kind = "TaintBraked"

	TaintAcknowledged Kind = "TaintAcknowledged"
	SoftTaintSet      Kind = "SoftTaintSet"
	SoftTaintCleared  Kind = "SoftTaintCleared"

	StartupTaintRemoved Kind = "StartupTaintRemoved"
	StartupTaintStays   Kind = "StartupTaintStays"
)

// Notice becomes an Event, a line of the log or a metric.
type Notice struct {
	Kind      Kind
	Condition probes.Condition
	From, To  probes.Level // of a LevelChanged
	Taint     taints.Taint // of a TaintLost
	Via       taints.Via   // of a TaintLost: how the taint was to stay
	By        string       // of a TaintLost: the field manager that removed it, if known
	Count     int          // of a TaintLost: which of the removals since the condition was set it is
	Reason    string
	Message   string
}

// condition is all that a State knows of one condition.
type condition struct {
	name     probes.Condition
	debounce Debouncer
	// stopped says what stops additions for it; empty: nothing does.
	stopped describe.Hold
	// disputes of its rules before Degraded, for Degraded and for Critical.
	disputes [3]dispute
	// removals of its taints by other clients.
	removals describe.Removals
	// last is the newest observation, decisive that which decided the level, or the worst
	// with the same reason since then; while the condition is OK, the newest that was not.
	// Its reason survives a restart.
	last, decisive probes.Observation
	// ruled are the other reasons since it was set that rules name, separated by spaces. alike is
	// how many samples in a row have the reason of the newest.
	ruled string
	alike int
	// onset is a Degraded that was not set yet.
	onset onset
	// fault is what a repair of the host cures.
	fault fault
	// since is when the level last changed; zero: not known.
	since time.Time
	// recorded is what the last revision of the record says.
	recorded RecordCondition
	// otherSince is since when the samples of an OK condition say something else than its Node
	// condition; zero: they do not.
	otherSince time.Time
	// latches of the severities that its rules name. Each Step copies them.
	latches []latch
	// budget meters its clears, those of its early taint, and its steps up to Critical.
	budget bucket
	// unknownNotified is when a person was last told that the probe cannot tell.
	unknownNotified time.Time
}

// disputeOf returns where the dispute of a level's rule is kept.
func (c *condition) disputeOf(level probes.Level) *dispute {
	return &c.disputes[level-probes.OK]
}

// reason is that for which the condition is not OK; empty: it is.
func (c *condition) reason() string {
	if c.debounce.Level <= probes.OK {
		return ""
	}
	return c.decisive.Reason
}

// isSeen reports whether the condition's probe has taken a sample.
func (c *condition) isSeen() bool { return c.last.Condition != "" }

// conditions are those of the configuration, in its order.
type conditions []condition

// of returns the condition of that name, nil if there is none.
func (all conditions) of(name probes.Condition) *condition {
	for i := range all {
		if all[i].name == name {
			return &all[i]
		}
	}
	return nil
}

// following returns a copy that has the conditions of the configuration. A new
// condition is OK, a dropped one is forgotten, and so is what belongs to a dropped rule.
func (all conditions) following(policy *Policy, now time.Time) conditions {
	followed := make(conditions, len(policy.Conditions))
	copy(followed, all)
	for i := range policy.Conditions {
		c, name := &followed[i], policy.Conditions[i].Name
		if c.name != name { // the configuration has others than before, or another order
			if known := all.of(name); known != nil {
				*c = *known
			} else {
				*c = condition{name: name, debounce: Debouncer{Level: probes.OK}}
				c.recorded = c.entry(Boot{})
			}
		}
		c.budget = c.budget.within(policy.WriteBudget, now)
		c.latches = latchesOf(policy, name, c.latches)
	}
	return followed
}

// onset is a Degraded that the evidence asks for and that was not set yet.
type onset struct {
	since time.Time // zero: there is none
	// round is the number of rounds at that time.
	round uint64
	// braked says why it waits for the fleet; empty: it does not.
	braked string
	// notified: people know that.
	notified bool
}

// summarize returns what the record is to say of a condition now.
func (s *State) summarize(t *turn, c *condition) summary {
	d, removals := s.describe(t, c), recent(c.removals, t.now)
	next := summary{
		Since: wall(c.since), ClearsAt: wall(d.Clears), HeldBy: d.Held, Flaps: c.debounce.flaps(),
		Removals: removals.Count, RemovedBy: removals.By, RemovedAt: wall(removals.At), FaultSince: s.boot.since(c.fault.SetAt),
	}
	if c.debounce.Level == probes.OK && t.now.Sub(c.debounce.SetAt) >= flapsFor {
		next.Flaps = 0
	}
	if next.HeldBy == describe.HeldFleetBrake { // the Node's condition says so, and it comes and goes
		next.HeldBy = ""
	}
	return next
}
