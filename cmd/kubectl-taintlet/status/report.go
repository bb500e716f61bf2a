// Package status shows the state of the fleet: which Nodes are degraded and since when, taintlet's
// actions, the causes that hold them back, and agents that do not run. Everything comes from the
// API server; no agent is asked. Reading a Node (read.go), joining Nodes with the installation
// (fleet.go) and rendering (render.go) are pure. Run does the rest.
package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// Kind is the kind of a Report as JSON or YAML.
const Kind = "FleetStatus"

// Report is what is shown. Fields are only ever added within a version.
type Report struct {
	metav1.TypeMeta `json:",inline"`
	// Time is by the API server's clock.
	Time    time.Time `json:"time"`
	Summary Summary   `json:"summary"`
	// Installed is what there is of the installation: a line for each DaemonSet of the agents, and one
	// for the eviction slots.
	Installed []string              `json:"installed,omitempty"`
	Unread    []installation.Unread `json:"unread,omitempty"`
	Findings  []Finding             `json:"findings,omitempty"`
	// Nodes are those that are not healthy, or those that were asked for, the worst first.
	Nodes []Node `json:"nodes"`
}

// DeepCopyObject makes the Report an object that kubectl's printers print. It returns the Report
// itself, which must not be changed.
func (r *Report) DeepCopyObject() runtime.Object { return new(*r) }

// Summary counts Nodes. Agents are all but those in the State NoAgent.
type Summary struct {
	Nodes  int           `json:"nodes"`
	Agents int           `json:"agents"`
	States map[State]int `json:"states"`
	// Paused Nodes, and those under Maintenance, are in any State.
	Paused      int `json:"paused"`
	Maintenance int `json:"maintenance,omitempty"`
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
	// Down: an agent has written the Node, and it has no ready agent now. All other data of the
	// Node is old.
	Down State = "Down"
	// Silent: the agent has not written the Node for some heartbeats. All other data of the Node is
	// old.
	Silent State = "Silent"
	// Tainted: the Node has a taint of taintlet.
	Tainted State = "Tainted"
	// Degraded: a condition is degraded, and the Node has no taint of taintlet.
	Degraded State = "Degraded"
	// Unknown: the agent cannot tell about a condition, or the fleet brake holds a
	// taint back.
	Unknown State = "Unknown"
	// Healthy: none of these.
	Healthy State = "Healthy"
)

// Node is what one Node says.
type Node struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// LastSign is when the agent most recently wrote the Node.
	LastSign *time.Time `json:"lastSign,omitempty"`
	// Agent is the name of the agent that wrote the record.
	Agent string `json:"agent,omitempty"`
	// Config is the hash of the configuration that the agent uses, which tells files apart.
	Config string `json:"configuration,omitempty"`
	// Ready is the kubelet's condition of that name: True, False or Unknown.
	Ready string `json:"ready,omitempty"`
	// Paused is the value of the annotation by which operators pause taintlet.
	Paused string `json:"paused,omitempty"`
	// Maintenance is the type of the Node condition by which the Node is under maintenance.
	Maintenance string `json:"maintenance,omitempty"`
	// Problem says why the record on the Node cannot be read.
	Problem string `json:"problem,omitempty"`
	// Conditions are taintlet's, and RepairNeeded while the host needs a reboot or a replacement.
	Conditions []Condition `json:"conditions,omitempty"`
	// Others are taintlet's taints that belong to none of the conditions.
	Others []Taint `json:"otherTaints,omitempty"`
	// ClockSkewSeconds is how far the host's clock is ahead of the API server's.
	ClockSkewSeconds int64 `json:"clockSkewSeconds,omitempty"`
	// AgentPods are the agents' pods on this Node, and EvictionSlot is the Lease that lets it evict.
	AgentPods    []string `json:"agentPods,omitempty"`
	EvictionSlot string   `json:"evictionSlot,omitempty"`
	// ForeignTaints and ForeignConditions are those of other programs, of a Node that was asked for.
	// A condition is a type, a status and a reason. A cordon stands among the taints.
	ForeignTaints     []string `json:"foreignTaints,omitempty"`
	ForeignConditions []string `json:"foreignConditions,omitempty"`

	// isSilent: the agent's last sign is too old. keepFails says that the policy which keeps
	// taints fails; empty: the agent did not notice. mistypedPause is a word of the annotation
	// taintlet.dev/paused that names no condition; empty: there is none.
	isSilent                 bool
	keepFails, mistypedPause string
	// evicts: the Node has a NoExecute taint of taintlet. specWrittenAt is when an agent most
	// recently wrote the Node's taints or annotations.
	evicts        bool
	specWrittenAt time.Time
	// asked: the user named this Node.
	asked bool
}

// Condition is the state of a condition of taintlet, as the Node reports it.
type Condition struct {
	// Name is the condition's, without Host.
	Name string `json:"name"`
	// Level is Unknown if the Node's condition is Unknown, which has no level.
	Level  probes.Level `json:"level"`
	Since  time.Time    `json:"since"`
	Reason string       `json:"reason"`
	// Message has the names of pods in place of their UIDs, as far as they are known. An agent may
	// not read pods; the person who asks perhaps may.
	Message string `json:"message"`
	// ReportedAt is when the agent wrote the Message, by the API server's clock.
	ReportedAt time.Time `json:"reportedAt"`
	Taints     []Taint   `json:"taints,omitempty"`
	// ClearsAt is when the taint is removed if all samples stay good; nil: not known.
	ClearsAt *time.Time `json:"clearsAt,omitempty"`
	// Flaps is how often the condition was set in close succession.
	Flaps int `json:"flaps,omitempty"`
	// HeldBy says what keeps a taint from being set or removed.
	HeldBy string `json:"heldBackBy,omitempty"`
	// RemovedBy is the field manager that removed the taint, as the agent noted it; "unknown"
	// where the API server did not know it.
	RemovedBy string `json:"removedBy,omitempty"`
}

// Taint is a taint on a Node and how it stays there.
type Taint struct {
	Taint string     `json:"taint"` // key=value:Effect
	Via   taints.Via `json:"via"`
}

// isHealthy reports whether nothing about the condition needs a person.
func (c Condition) isHealthy() bool {
	return c.Level == probes.OK && len(c.Taints) == 0 && c.HeldBy == ""
}
