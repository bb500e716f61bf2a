// Package decide turns what the probes saw into what the Node should carry. It
// has no clock, does no I/O and logs nothing: the same Step runs in production,
// in tests and in a simulator.
package decide

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// conditionCount is the number of conditions; arrays keep a State a value that
// a copy does not share.
const conditionCount = 4

// index is the place of a condition in the State's arrays.
func index(c probes.Condition) int {
	switch c {
	case probes.MemoryPressure:
		return 0
	case probes.DiskPressure:
		return 1
	case probes.PIDPressure:
		return 2
	default:
		return 3
	}
}

// perCondition is all that a State knows of one condition.
type perCondition struct {
	debounce Debounce
	// disputes of the rules for Degraded and Critical.
	disputes [2]dispute
	// last is the newest observation, because the one that decided the level.
	last, because probes.Observation
	// waitingSince is since when a metered step is due that found no token.
	waitingSince time.Time
	// toldUnknown is when a person was last told that the probe cannot tell.
	toldUnknown time.Time
}

// disputeOf returns where the dispute of a level's rule is kept.
func (c *perCondition) disputeOf(level probes.Level) *dispute {
	return &c.disputes[level-probes.Degraded]
}

// State is everything that Step remembers. It is a value: Step returns a new
// one and leaves the old one as it was.
type State struct {
	boot       Boot
	instance   instance
	conditions [conditionCount]perCondition
	bucket     bucket

	// restored: a Node, and so the record, has been seen. Before that evidence
	// is collected, but nothing is decided.
	restored bool
	// readOnly: the record is a newer release's, hands off.
	readOnly bool
	// standBack is set while a newer instance looks after the Node.
	standBack standBack
	// dirty: a decision was taken that the record does not hold yet.
	dirty bool
	// compared: want is what was wanted last; false just after a start.
	compared bool
	// revision is that of the last decision, landed the newest one that was
	// seen on the Node.
	revision, landed uint64
	decidedAt        time.Time
	decidedTime      string // decidedAt by the wall clock, for people
	uid              types.UID
	// owned are the pairs of ours on the Node when it was last seen with our
	// record.
	owned []taints.Pair
	// lost are those of them that others took off since; they count once.
	lost []taints.Pair
	want []wanted
	// dropped are pairs that were wanted by this process until a new
	// configuration stopped asking for them. They may be removed: this process
	// knows by itself, not from the record alone, that they are its own.
	dropped []taints.Pair
	paused  paused
	// evictedAt is when this Node last stepped up to Critical.
	evictedAt time.Time
	// controlPlane: the Node is labelled as one of the control plane.
	controlPlane bool
	// waitsForSlot: people know that an eviction waits for a slot.
	waitsForSlot bool

	// conditionsDue: our Node conditions are to be reported anew; report is
	// what is being written. It does not change until it is written: a message
	// that moves with every look must not make a write of every look.
	conditionsDue bool
	report        []corev1.NodeCondition
	// settled is the Node on which nothing was left to do, with the facts and
	// the configuration that went into that; reviewAt is when time alone may
	// change the answer.
	settled  *Node
	facts    taints.Facts
	slot     Slot
	cfg      *config.Config
	reviewAt time.Time
}

// New returns the State of an agent that has just started and seen nothing.
// The name tells this process from all others.
func New(boot Boot, name string, started time.Time) State {
	s := State{boot: boot, conditionsDue: true}
	s.instance = instance{Name: name, Term: 1, StartedAt: started.Sub(boot.At)}
	for i := range s.conditions {
		s.conditions[i].debounce.Level = probes.OK
	}
	return s
}

// Forget drops the evidence that was collected of a condition, because it will
// be judged by other thresholds from now on. What was decided stays, as after
// a restart.
func (s State) Forget(c probes.Condition) State {
	d := &s.conditions[index(c)].debounce
	d.window, d.certain, d.class, d.held, d.unknownSince = 0, false, none, 0, time.Time{}
	return s
}

// WhyNotWriting says why the Node is left to others; empty when it is not.
func (s *State) WhyNotWriting() string {
	switch {
	case s.readOnly:
		return "the record on the Node was written by a newer release"
	case s.standBack.by.Name != "":
		return "another agent, " + s.standBack.by.Name + ", looks after this Node"
	}
	return ""
}

// IsPaused reports whether a person has stopped new taints for a condition.
func (s *State) IsPaused(c probes.Condition) bool { return s.paused.has(c) }

// Level is the level that was decided for a condition.
func (s *State) Level(c probes.Condition) probes.Level {
	return s.conditions[index(c)].debounce.Level
}

// Placed is a taint that the State wants on the Node and how it stays there.
type Placed struct {
	Condition probes.Condition
	Pair      taints.Pair
	Via       taints.Via
}

// Placed returns the taints that are wanted now.
func (s *State) Placed() []Placed {
	placed := make([]Placed, 0, len(s.want))
	for _, w := range s.want {
		placed = append(placed, Placed{w.condition, w.taint.Pair(), w.via})
	}
	return placed
}

// Node is a Node as Step needs it: the object and its record, read once.
type Node struct {
	*corev1.Node
	record    record
	recordErr error
	paused    paused
}

// Read prepares a Node for Step.
func Read(node *corev1.Node) *Node {
	r, err := parseRecord(node.Annotations[taints.RecordAnnotation])
	return &Node{node, r, err, parsePaused(node.Annotations[taints.PausedAnnotation])}
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
}

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
	Overtaken      Kind = "AgentOvertaken"
	TookOver       Kind = "AgentTookOver"
	Paused         Kind = "TaintsPaused"
	Resumed        Kind = "TaintsResumed"
	EvictionWaits  Kind = "EvictionWaitsForSlot"
)

// Notice is something that people and metrics are told.
type Notice struct {
	Kind      Kind
	Condition probes.Condition
	From, To  probes.Level // of a LevelChanged
	Via       taints.Via   // of a TaintLost: how the pair was to stay
	By        string       // of a TaintLost: the field manager that removed it, if known
	Reason    string
	Message   string
}
