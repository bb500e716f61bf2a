// Package decide turns what the probes saw into what the Node should carry. It
// has no clock, does no I/O and logs nothing: the same Step runs in production,
// in tests and in a simulator.
package decide

import (
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// State is everything that Step remembers. It is a value: Step returns a new
// one and leaves the old one as it was.
type State struct {
	boot       Boot
	conditions conditions
	budget     bucket
	active     active
	ledger     ledger
	pause      pause
	eviction   eviction
	report     report
	brake      brake
}

// New returns the State of an agent that has just started and seen nothing.
// The name tells this process from all others.
func New(boot Boot, name string, started time.Time) State {
	return State{
		boot:   boot,
		active: active{instance: instance{Name: name, Term: 1, StartedAt: started.Sub(boot.At)}},
	}
}

// Forget drops the evidence that was collected of a condition, because it will
// be judged by other thresholds from now on. What was decided stays, as after
// a restart.
func (s State) Forget(name probes.Condition) State {
	s.conditions = s.conditions.clone()
	if c := s.conditions.of(name); c != nil {
		c.debounce, c.request = c.debounce.forget(), request{}
	}
	return s
}

// WhyNotWriting says why this agent does not write the Node; empty when it does.
func (s *State) WhyNotWriting() string { return s.active.whyNotWriting() }

// IsPaused reports whether a person has stopped new taints for a condition.
func (s *State) IsPaused(name probes.Condition) bool { return s.pause.has(name) }

// Level is the level that was decided for a condition.
func (s *State) Level(name probes.Condition) probes.Level {
	if c := s.conditions.of(name); c != nil {
		return c.debounce.Level
	}
	return probes.OK
}

// Placed is a taint that the State desires on the Node and how it stays there.
type Placed struct {
	Condition probes.Condition
	Pair      taints.Pair
	Via       taints.Via
	Value     string
	Level     probes.Level // of the rule
}

// Taint returns the taint with its value.
func (p Placed) Taint() taints.Taint {
	return p.Pair.With(p.Value)
}

// Placed returns the taints that are desired now.
func (s *State) Placed() []Placed {
	placed := make([]Placed, 0, len(s.ledger.desired))
	for _, d := range s.ledger.desired {
		placed = append(placed, Placed{d.condition, d.taint.Pair(), d.via, d.taint.Value, d.level})
	}
	return placed
}

// Node is a Node as Step needs it: the object and its record, read once.
type Node struct {
	*taints.Node
	record    record
	recordErr error
}

// Read prepares a Node for Step.
func Read(node *taints.Node) *Node {
	r, err := parseRecord(node.Annotations[taints.RecordAnnotation])
	return &Node{node, r, err}
}

// Inputs are what is new since the last Step.
type Inputs struct {
	Observations []probes.Observation
	// Node is the newest version seen, not changed between Steps by anybody;
	// nil while there is none.
	Node *Node
	// Facts of the cluster.
	Facts taints.Facts
	// Written: the last Change was written to Node.
	Written bool
	// Refresh: the heartbeat of our conditions is due.
	Refresh bool
	// Slot is what is known of this Node's eviction slot.
	Slot Slot
	// Peers is what the agents of other Nodes said.
	Peers Peers
}

// Decision is what one Step came to.
type Decision struct {
	// Change is what the Node lacks; nil when it lacks nothing.
	Change *taints.Change
	// Notices tell what happened, in order.
	Notices []Notice
	// Slot is what is requested of the eviction slot.
	Slot SlotRequest
	// Adopted is the heartbeat of the conditions that stand on the Node, by the wall
	// clock, when a restarted agent found that they say what it would write. The next
	// heartbeat goes by that. Zero: nothing was adopted now.
	Adopted time.Time
}

// turn is one call of Step: what its parts are given, and what they decide.
type turn struct {
	policy *Policy
	in     Inputs
	now    time.Time
	Decision
}

func (t *turn) tell(n Notice) { t.Notices = append(t.Notices, n) }

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
	RecordRefused  Kind = "RecordRefused"
	Standby        Kind = "AgentStandby"
	Active         Kind = "AgentActive"
	Paused         Kind = "TaintsPaused"
	Resumed        Kind = "TaintsResumed"
	EvictionWaits  Kind = "EvictionWaitsForSlot"
	TaintBraked    Kind = "TaintBraked"
)

// Notice is something that people and metrics are told.
type Notice struct {
	Kind      Kind
	Condition probes.Condition
	From, To  probes.Level // of a LevelChanged
	Taint     taints.Taint // of a TaintLost
	Via       taints.Via   // of a TaintLost: how the taint was to stay
	By        string       // of a TaintLost: the field manager that removed it, if known
	Reason    string
	Message   string
}
