package decide

import (
	"slices"
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Status is what a Node's record and conditions say to people.
type Status struct {
	// Agent is the name of the instance that wrote the record.
	Agent string
	// Config is the hash of the configuration that it uses; empty: it does not say so.
	Config string
	// Owned are the pairs that the record names as taintlet's.
	Owned []taints.Pair
	// Soft has the soft taints of the record, by pair, with their conditions.
	Soft map[taints.Pair]probes.Condition
	// KeepFails says that the admission policy fails; empty: the agent did not notice that.
	KeepFails string
	// Conditions has those of the record, by name.
	Conditions map[probes.Condition]ConditionStatus
}

// ConditionStatus is what a record says of one condition.
type ConditionStatus struct {
	Level probes.Level
	// Since is when the level last changed; zero: not known.
	Since time.Time
	// ClearsAt is when the condition clears if every sample is good until then;
	// zero: the newest sample told was not good.
	ClearsAt time.Time
	// HeldBy is what keeps the condition from its taint, from an eviction or from
	// clearing; empty: nothing.
	HeldBy describe.Hold
	// Flaps is how often the condition was set most recently, as damping counts it.
	Flaps int
	// Removals is how often others removed taints of the condition, until a day after the
	// newest removal. RemovedBy is the field manager of the newest, empty where the API
	// server did not know it, and RemovedAt is when that was noticed.
	Removals  int
	RemovedBy string
	RemovedAt time.Time
	// Disputed: others removed a taint of the condition, and taintlet has given way.
	Disputed bool
}

// ReadStatus reads what a Node's record says. All of it is for people: whoever may
// write the annotation may forge it. The error says why it cannot be read.
func ReadStatus(node *taints.Node) (Status, error) {
	r, err := parseRecord(node.Annotations[taints.RecordAnnotation])
	if err != nil {
		return Status{}, err
	}
	s := Status{
		Agent: r.Instance.Name, Config: r.Config, Owned: r.Owned,
		Conditions: make(map[probes.Condition]ConditionStatus, len(r.Conditions)), Soft: r.Soft.pairs(),
	}
	if r.Keep.isPossible() {
		s.KeepFails = describe.KeepFails(r.Keep.Lost)
	}
	for name, c := range r.Conditions {
		s.Conditions[name] = ConditionStatus{
			Level: c.Level, Since: readWall(c.Since), ClearsAt: readWall(c.ClearsAt), HeldBy: c.HeldBy.Known(), Flaps: max(0, c.Flaps),
			Removals: max(0, c.Removals), RemovedBy: describe.Cut(c.RemovedBy), RemovedAt: readWall(c.RemovedAt),
			Disputed: slices.ContainsFunc(disputed(), func(level probes.Level) bool { return c.Dispute[level.String()].Stage != asRuled }),
		}
	}
	for i := range node.Conditions { // the record does not say it: it comes and goes
		shown := &node.Conditions[i]
		name, isOurs := conditionName(shown.Type)
		if isOurs && shown.Reason == describe.ReasonBraked {
			c := s.Conditions[name]
			c.Level, c.HeldBy = max(c.Level, probes.OK), describe.HeldFleetBrake
			s.Conditions[name] = c
		}
	}
	return s, nil
}
