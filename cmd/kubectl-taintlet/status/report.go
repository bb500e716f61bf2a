// Package status tells people how the fleet is: which Nodes are not well, since
// when, what taintlet did and what holds it back. Everything comes from the Nodes;
// no agent is asked. Reading a Node (read.go) and rendering (table.go, summary.go)
// are pure. Run does the rest.
package status

import (
	"time"

	"github.com/taintlet/taintlet/taints"
)

// Kind is the kind of a Report as JSON or YAML.
const Kind = "FleetStatus"

// Report is what is shown. Fields are only ever added within a version.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Time is when the Report was made, by the API server's clock.
	Time    time.Time `json:"time"`
	Summary Summary   `json:"summary"`
	// Nodes are those that are not well, by name, or those that were asked for.
	Nodes []Node `json:"nodes"`
}

// Summary counts Nodes. Each Node with an agent has one State: Well, Tainted,
// Untainted, Unknown and Silent add up to Agents.
type Summary struct {
	Nodes        int `json:"nodes"`
	Agents       int `json:"agents"`
	Well         int `json:"well"`
	Tainted      int `json:"tainted"`
	Untainted    int `json:"untainted"`
	Unknown      int `json:"unknown"`
	Silent       int `json:"silent"`
	WithoutAgent int `json:"withoutAgent"`
	// Paused Nodes are in any State.
	Paused int `json:"paused"`
	// SilentSeconds is for how long the agent that has been silent longest has
	// been.
	SilentSeconds int64 `json:"silentSeconds,omitempty"`
}

// State is what one word can say of a Node.
type State string

// The States, the first that holds.
const (
	// NoAgent: nothing on the Node is taintlet's.
	NoAgent State = "NoAgent"
	// Silent: the agent has given no sign for some heartbeats. What the Node says
	// besides is old.
	Silent State = "Silent"
	// Tainted: a taint of taintlet's is on the Node.
	Tainted State = "Tainted"
	// Untainted: a condition is bad, and no taint of taintlet's is on the Node.
	Untainted State = "Untainted"
	// Unknown: the agent cannot tell about a condition, or the fleet brake holds a
	// taint back.
	Unknown State = "Unknown"
	// Well: none of these.
	Well State = "Well"
)

// Node is what one Node says.
type Node struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// LastSign is when the agent most recently wrote the Node.
	LastSign *time.Time `json:"lastSign,omitempty"`
	// Agent is the name of the agent that wrote the record.
	Agent string `json:"agent,omitempty"`
	// Ready is the kubelet's condition of that name: True, False or Unknown.
	Ready string `json:"ready,omitempty"`
	// Paused is the value of the annotation by which people pause taintlet.
	Paused string `json:"paused,omitempty"`
	// Problem says why the record on the Node cannot be read.
	Problem    string      `json:"problem,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
	// Others are taints of taintlet's that belong to none of the conditions.
	Others []Taint `json:"otherTaints,omitempty"`

	// asked: somebody asked for this Node by its name.
	asked bool
}

// Condition is what a Node says of one of taintlet's conditions.
type Condition struct {
	// Name is the condition's, without Host.
	Name    string    `json:"name"`
	Level   string    `json:"level"`
	Since   time.Time `json:"since"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Taints  []Taint   `json:"taints,omitempty"`
	// ClearsAt is when the taint goes if all samples stay good; nil: that cannot be
	// told.
	ClearsAt *time.Time `json:"clearsAt,omitempty"`
	// Flaps is how often the condition was set in close succession.
	Flaps int `json:"flaps,omitempty"`
	// HeldBy says what keeps a taint from being set or removed.
	HeldBy string `json:"heldBackBy,omitempty"`
	// RemovedBy is the field manager that removed the taint, where Kubernetes knows
	// it; "somebody" where it does not.
	RemovedBy string `json:"removedBy,omitempty"`
}

// Taint is a taint on a Node and how it stays there.
type Taint struct {
	Taint string     `json:"taint"` // key=value:Effect
	Via   taints.Via `json:"via"`
}

// isWell reports whether nothing about the condition needs a person.
func (c Condition) isWell() bool {
	return c.Level == levelOK && len(c.Taints) == 0 && c.HeldBy == ""
}
