// Package decide turns what the probes saw into what the Node should carry. It
// has no clock, does no I/O and logs nothing: the same Step runs in production,
// in tests and in a simulator.
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
	// upkeep meters what no condition asks for: repairs of what others undid, the end of a
	// pause, lower values, and the removal of the start-up taint.
	upkeep     bucket
	active     active
	ledger     ledger
	pause      pause
	eviction   eviction
	writes     conditionWrites
	startup    startup
	hostRepair hostRepair
	soft       soft
	keep       keepFailure
}

// New returns the State of an agent that has just started and seen nothing.
// The name tells this process from all others.
func New(boot Boot, name string) State {
	return State{boot: boot, active: active{name: name}}
}

// turn is one call of Step: what its parts are given, and what they decide.
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
	// at is when this Node most recently stepped up to Critical.
	at time.Time
	// controlPlane: the Node is labelled as one of the control plane.
	controlPlane bool
	// waits: people know that an eviction waits for a slot.
	waits bool
}

// hostRepair is what a State knows of the repair of its host.
type hostRepair struct {
	// endedAt is when the Node most recently said that the host needs one, and it did not.
	endedAt time.Time
	// shown is what the Node's condition says; nil: this process has not compared it yet.
	shown *describe.Repair
}

// soft is the budget of the soft taints, and what the record says of it: it has tokens of its
// own, and takes none of those that clears, repairs and steps up to Critical need. Without a
// rule for a soft taint it is empty.
type soft struct{ budget, recorded bucket }

// startup is what a State knows of the taint with which its Node has registered.
type startup struct {
	// since is when this process first saw the taint on this Node object; zero: the Node
	// does not start.
	since time.Time
	// round is the number of rounds when this process first knew a peer; hasPeers: it does.
	round    uint64
	hasPeers bool
	// freed is the UID of the Node object from which the taint was removed. It is removed
	// once: what comes back is somebody else's.
	freed string
	// isGone: the removal has landed.
	isGone bool
	// notified: people know that the taint stays for too long.
	notified bool
}

// Kind of a Notice; also the reason of the Event that tells of it.
type Kind string

// The kinds of Notices.
const (
	LevelChanged   Kind = "LevelChanged"
	TaintLost      Kind = "TaintLost"
	TaintSetAgain  Kind = "TaintSetAgain"
	TaintContested Kind = "TaintContested"
	TaintVetoed    Kind = "TaintVetoed"
	StillUnknown   Kind = "ConditionStillUnknown"
	// KeepPolicyFails: the admission policy is there and keeps no taint.
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

// Notice is something that people and metrics are told.
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
	// Culprit is who took what is scarce, of a LevelChanged.
	Culprit probes.Culprit
}
