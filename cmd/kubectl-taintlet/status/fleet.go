// Package status shows the state of the fleet: which Nodes are degraded and since when, taintlet's
// actions, the causes that hold them back, and agents that do not run. Everything comes from the
// API server; no agent is asked. Reading a Node (read.go), joining Nodes with the installation
// (fleet.go) and rendering (render.go) are pure. Run does the rest.
package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

// Kind is the kind of a Report as JSON or YAML.
const Kind = "FleetStatus"

// Report is the output. Within a version, fields are only ever added.
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

// Fleet has the facts about all Nodes that some Options need. It keeps rows and no Node, and of a
// Node that is healthy its name and the last sign of its agent.
type Fleet struct {
	// Installation is what the chart has installed; nil: it was not read.
	Installation *installation.Installation
	// InUse is the configuration of the agents; nil: it is not known. Policy is its policy, or that
	// of the built-in configuration.
	InUse  *config.Config
	Policy *decide.Policy

	o        Options
	policies map[*config.Config]*decide.Policy // of InUse and its overrides
	nodes    map[string]Node
}

// NewFleet returns a Fleet without Nodes.
func NewFleet(o Options) *Fleet {
	return &Fleet{o: o, Policy: config.Default().Policy(), policies: map[*config.Config]*decide.Policy{}, nodes: map[string]Node{}}
}

// Read reads the installation, and the Nodes, which have the conditions of the configuration. It
// calls also with each Node.
func (f *Fleet) Read(ctx context.Context, client *installation.Client, also func(*taints.Node)) error {
	if f.o.Namespace != "" {
		i, err := client.Read(ctx, f.o.Namespace)
		if err != nil {
			return err
		}
		f.SetInstallation(i)
	}
	return client.EachNode(ctx, f.o.Nodes, f.o.Selector, func(node *taints.Node) {
		f.Add(node)
		also(node)
	})
}

// Add takes in a Node as it is now.
func (f *Fleet) Add(node *taints.Node) {
	n := read(node, f.policyOf(node))
	if len(f.o.Nodes) == 0 { // what is not shown does not stay in memory
		n.Conditions, n.ForeignTaints, n.ForeignConditions = slices.DeleteFunc(n.Conditions, Condition.isHealthy), nil, nil
		if len(n.Conditions) == 0 {
			n.Conditions = nil
		}
	}
	f.nodes[strings.Clone(node.Name)] = n
}

// policyOf is the policy of a Node, which an override may change.
func (f *Fleet) policyOf(node *taints.Node) *decide.Policy {
	if f.InUse == nil {
		return f.Policy
	}
	own := f.InUse.For(node.Labels)
	if f.policies[own] == nil {
		f.policies[own] = own.Policy()
	}
	return f.policies[own]
}

// Report describes the state of the Fleet at that time.
func (f *Fleet) Report(now time.Time) Report {
	r := Report{TypeMeta: metav1.TypeMeta{APIVersion: config.APIVersion, Kind: Kind}, Time: now.UTC().Truncate(time.Second), Nodes: []Node{}, Summary: Summary{States: map[State]int{Healthy: 0, Tainted: 0, Degraded: 0, Unknown: 0, Silent: 0, Down: 0, NoAgent: 0}}}
	i := cmp.Or(f.Installation, &installation.Installation{})
	pods := installation.PodsByNode(i.Pods)
	var known []Node
	limit := cmp.Or(f.o.SilentAfter, f.Policy.Heartbeat*5/2)
	for name, n := range f.nodes {
		n.isSilent, n.asked = limit > 0 && (n.LastSign == nil || now.Sub(*n.LastSign) > limit), len(f.o.Nodes) > 0
		n.State = f.stateAt(n, pods[name])
		r.Summary.count(n, now)
		if n.State != NoAgent {
			known = append(known, n)
		}
		isShown := n.State != Healthy && n.State != NoAgent || n.Paused != "" || n.asked
		if isShown {
			for _, pod := range pods[name] {
				n.AgentPods = append(n.AgentPods, podText(pod, now))
			}
			for _, lease := range i.Slots {
				if apiserver.HolderOf(lease) == name {
					n.EvictionSlot = terminal.Clean(lease.Name, maxName)
				}
			}
			r.Nodes = append(r.Nodes, n)
		}
	}
	r.Unread, r.Installed, r.Findings = slices.Clone(i.Unread), f.installed(i, now), find(facts{installation: f.Installation, nodes: known, now: now, version: f.o.Version})
	if len(f.o.Nodes) > 0 || f.o.Selector != "" {
		r.Findings = slices.DeleteFunc(r.Findings, func(p Finding) bool { return p.Node != "" && f.nodes[p.Node].Name == "" })
	}
	slices.SortFunc(r.Nodes, func(a, b Node) int { return cmp.Or(a.urgency()-b.urgency(), strings.Compare(a.Name, b.Name)) })
	return r
}

// stateAt is the State with dead agents taken into account.
func (f *Fleet) stateAt(n Node, pods []*corev1.Pod) State {
	isUp := slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
		ready, _ := installation.ReadySince(p)
		return ready
	})
	switch {
	case n.State == NoAgent:
	case f.Installation != nil && f.Installation.Knows(installation.PartPods) && !isUp:
		return Down
	case n.isSilent:
		return Silent
	}
	return n.State
}

func (s *Summary) count(n Node, now time.Time) {
	s.Nodes++
	s.States[n.State]++
	s.Agents = s.Nodes - s.States[NoAgent]
	if n.Paused != "" {
		s.Paused++
	}
	if n.Maintenance != "" {
		s.Maintenance++
	}
	if n.State == Silent && n.LastSign != nil {
		s.SilentSeconds = max(s.SilentSeconds, int64(now.Sub(*n.LastSign)/time.Second))
	}
}

// IsWell reports whether there are agents, all are healthy and nothing has failed. If Nodes were
// named, each needs an agent, and failures elsewhere do not count.
func (f *Fleet) IsWell(r Report) bool {
	isAsked := len(f.o.Nodes) > 0
	hasFailed := slices.ContainsFunc(r.Findings, func(p Finding) bool {
		return p.Severity == Failure && (!isAsked || p.Node != "")
	})
	return r.Summary.Agents > 0 && r.Summary.States[Healthy] == r.Summary.Agents && (!isAsked || r.Summary.States[NoAgent] == 0) && !hasFailed
}

func (n Node) urgency() int {
	order := []State{Down, Silent, Tainted, Degraded, Unknown, Healthy, NoAgent}
	urgency := 2 * slices.Index(order, n.State)
	if slices.ContainsFunc(n.Conditions, func(c Condition) bool { return c.Level == probes.Critical }) {
		urgency--
	}
	return urgency
}

// SetInstallation takes in the present installation. Nodes that are added later have the conditions
// of its configuration.
func (f *Fleet) SetInstallation(i *installation.Installation) {
	f.Installation = i
	if f.InUse, _ = i.Configuration(); f.InUse != nil { // what is wrong with it is a Finding
		f.Policy = f.InUse.Policy()
	}
}

// installed is what there is of the installation, in lines.
func (f *Fleet) installed(i *installation.Installation, now time.Time) (lines []string) {
	for _, d := range i.DaemonSets {
		line := fmt.Sprintf("DaemonSet %s/%s: %d desired, %d ready", d.Namespace, d.Name, d.Status.DesiredNumberScheduled, d.Status.NumberReady)
		if missing := d.Status.DesiredNumberScheduled - d.Status.CurrentNumberScheduled; missing > 0 {
			line += fmt.Sprintf(", %d missing", missing)
		}
		line = terminal.With(line, "; version ", installation.VersionOf(installation.Agent(&d.Spec.Template.Spec).Image))
		lines = append(lines, terminal.Clean(line, MaxText))
	}
	if len(i.Slots) == 0 {
		return lines
	}
	free := 0
	var held []string
	for _, lease := range i.Slots {
		holder, text := apiserver.HolderOf(lease), apiserver.HolderOf(lease)+" holds "+lease.Name
		switch until := f.cooldownUntil(holder); {
		case holder == "":
			free++
			continue
		case until.After(now):
			text += ", cooldown until " + until.Format("15:04 UTC")
		case lease.Spec.RenewTime != nil:
			text += ", renewed " + ago(now, lease.Spec.RenewTime.Time)
		}
		held = append(held, terminal.Clean(text, MaxText))
	}
	return append(lines, strings.Join(append([]string{fmt.Sprintf("eviction slots: %d, %d free", len(i.Slots), free)}, held...), "; "))
}

// podText is an agent's pod, with since when it is ready, or not.
func podText(pod *corev1.Pod, now time.Time) string {
	text := terminal.With(pod.Name, ", version ", installation.VersionOf(installation.Agent(&pod.Spec).Image))
	isReady, since := installation.ReadySince(pod)
	text += map[bool]string{true: ", ready", false: ", not ready"}[isReady] + forSince(now, since)
	if c := installation.AgentStatus(pod); c != nil && c.RestartCount > 0 {
		text += ", " + terminal.Count(int(c.RestartCount), "restart")
	}
	return terminal.Clean(text, MaxText)
}

// cooldownUntil is until when a Node keeps its eviction slot at most; zero: it evicts or is
// about to, or nothing is known of it. The removal of its NoExecute taint was a write of its
// spec.
func (f *Fleet) cooldownUntil(holder string) time.Time {
	n := f.nodes[holder]
	if n.evicts || slices.ContainsFunc(n.Conditions, func(c Condition) bool { return c.Level == probes.Critical }) {
		return time.Time{}
	}
	return n.specWrittenAt.Add(cmp.Or(f.InUse, config.Default()).Eviction.Cooldown.Duration).UTC()
}
