package decide

import (
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Kind of a Notice; also the reason of the Event that tells of it.
type Kind string

// The kinds of Notices.
const (
	LevelChanged   Kind = "LevelChanged"
	TaintLost      Kind = "TaintLost"
	TaintContested Kind = "TaintContested"
	TaintVetoed    Kind = "TaintVetoed"
	TaintWithdrawn Kind = "TaintWithdrawn"
	StillUnknown   Kind = "ConditionStillUnknown"
	// KeepPolicyFails: the admission policy is there and keeps no taint.
	KeepPolicyFails Kind = "KeepPolicyFails"
	RecordRefused   Kind = "RecordRefused"
	Standby         Kind = "AgentStandby"
	Active          Kind = "AgentActive"
	Paused          Kind = "TaintsPaused"
	Resumed         Kind = "TaintsResumed"
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
	Count     int          // of a TaintLost: which of the removals within a day it is
	Reason    string
	Message   string
	// Culprit is who took what is scarce, of a LevelChanged.
	Culprit probes.Culprit
}
