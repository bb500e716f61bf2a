// Package findings finds everything that is wrong with an installation and its agents, each
// with the next command. It is pure: it judges what others have read.
package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/taints"
)

// Severity says how bad a Finding is.
type Severity string

// The Severities.
const (
	// Failure: taintlet does not do its work somewhere, or is not protected.
	Failure Severity = "Failure"
	// Warning: it does its work, and a person should look.
	Warning Severity = "Warning"
)

// Finding is one thing that is wrong.
type Finding struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	// Node is the Node that has it; empty: the whole installation.
	Node string `json:"node,omitempty"`
	Text string `json:"text"`
	// Command is the next command; empty: there is none.
	Command string `json:"command,omitempty"`
	// DependsOn are the Findings that would explain this one. It is shown where there is none
	// of them, for its Node or for the whole installation.
	DependsOn []Code `json:"dependsOn,omitempty"`
}

// Code is what a Finding is called. Codes are only ever added; docs/status.md lists them.
type Code string

// The Codes.
const (
	NotInstalled            Code = "NotInstalled"
	DaemonSetMissing        Code = "DaemonSetMissing"
	DaemonSetSelectsNoNode  Code = "DaemonSetSelectsNoNode"
	AgentMissing            Code = "AgentMissing"
	AgentPending            Code = "AgentPending"
	AgentNotStarted         Code = "AgentNotStarted"
	AgentNotReady           Code = "AgentNotReady"
	AgentOutOfMemory        Code = "AgentOutOfMemory"
	AgentRestarted          Code = "AgentRestarted"
	AgentSilent             Code = "AgentSilent"
	SeveralAgents           Code = "SeveralAgents"
	PermissionMissing       Code = "PermissionMissing"
	RecordUnreadable        Code = "RecordUnreadable"
	ClockSkew               Code = "ClockSkew"
	TaintContested          Code = "TaintContested"
	PauseMistyped           Code = "PauseMistyped"
	ConfigurationMissing    Code = "ConfigurationMissing"
	ConfigurationInvalid    Code = "ConfigurationInvalid"
	ConfigurationRefused    Code = "ConfigurationRefused"
	ConfigurationNotInForce Code = "ConfigurationNotInForce"
	ConditionWithoutRule    Code = "ConditionWithoutRule"
	PolicyMissing           Code = "PolicyMissing"
	PolicyNotInForce        Code = "PolicyNotInForce"
	PolicyChanged           Code = "PolicyChanged"
	KeepPolicyFails         Code = "KeepPolicyFails"
	SlotMissing             Code = "SlotMissing"
	VersionsDiffer          Code = "VersionsDiffer"
	ProgramVersionDiffers   Code = "ProgramVersionDiffers"
)

// Codes are all Codes, in the order in which they are shown.
func Codes() []Code {
	return []Code{
		NotInstalled, DaemonSetMissing, DaemonSetSelectsNoNode, PermissionMissing, ConfigurationMissing, ConfigurationInvalid, ConfigurationRefused, ConfigurationNotInForce,
		PolicyMissing, PolicyNotInForce, KeepPolicyFails, PolicyChanged, SlotMissing,
		AgentMissing, AgentPending, AgentNotStarted, AgentOutOfMemory, AgentNotReady, AgentSilent, SeveralAgents, RecordUnreadable,
		AgentRestarted, TaintContested, PauseMistyped, ClockSkew, ConditionWithoutRule, VersionsDiffer, ProgramVersionDiffers,
	}
}

// dependsOn are the Codes that explain this one.
func (c Code) dependsOn() []Code {
	noAgent := []Code{NotInstalled, DaemonSetMissing, DaemonSetSelectsNoNode}
	switch c {
	case NotInstalled, RecordUnreadable, TaintContested, PauseMistyped, ClockSkew, KeepPolicyFails: // of the Nodes
		return nil
	case AgentMissing:
		return noAgent
	case AgentSilent:
		return append(noAgent, AgentMissing, AgentPending, AgentNotStarted, AgentOutOfMemory, AgentNotReady)
	case ConfigurationNotInForce:
		return append(noAgent, ConfigurationInvalid)
	case ProgramVersionDiffers:
		return []Code{NotInstalled, VersionsDiffer}
	}
	return []Code{NotInstalled}
}

// unexplained returns the Findings that no other one explains.
func unexplained(all []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(all), func(f Finding) bool {
		return slices.ContainsFunc(all, func(other Finding) bool {
			return other.Severity == Failure && slices.Contains(f.DependsOn, other.Code) && (other.Node == "" || other.Node == f.Node)
		})
	})
}

// Facts are what is judged.
type Facts struct {
	// Installation is what the API server has; nil: nobody asked.
	Installation *installation.Installation
	Nodes        []Node
	// Now is the time of the API server.
	Now time.Time
	// Version is that of this program.
	Version string
}

// Node is a Node that an agent has written.
type Node struct {
	Name string
	// LastSign is when the agent most recently wrote the Node; zero: not known.
	LastSign time.Time
	// IsSilent: that was too long ago.
	IsSilent bool
	// Config is the hash of the configuration that the agent uses; empty: it does not say so.
	Config string
	// Skew is how far the host's clock is ahead of the API server's.
	Skew time.Duration
	// Unreadable says why the record cannot be read; empty: it can.
	Unreadable string
	// KeepFails says that the policy which keeps taints fails; empty: the agent did not notice.
	KeepFails string
	// MistypedPause is a word of the annotation taintlet.dev/paused that names no condition;
	// empty: there is none.
	MistypedPause string
	// Contested are the conditions whose taint others removed, so that taintlet gave way.
	Contested []Contested
}

// Contested is a condition whose taint others removed.
type Contested struct {
	Condition string
	// HasTaint: a taint of the condition is on the Node, such as the stand-in.
	HasTaint bool
}

// Find returns all Findings that no other one explains: first the Failures, those of the
// installation before those of Nodes, which are sorted by name.
func Find(f Facts) []Finding {
	f.Nodes = slices.SortedFunc(slices.Values(f.Nodes), func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	all := append(hosts(f), keepFails(f)...)
	if f.Installation != nil {
		cfg, err := f.Installation.Configuration()
		all = slices.Concat(all, agents(f), configuration(f, cfg, err), policies(f, cfg), slots(f, cfg), versions(f))
	}
	order := Codes()
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(strings.Compare(string(a.Severity), string(b.Severity)), slices.Index(order, a.Code)-slices.Index(order, b.Code), strings.Compare(a.Node, b.Node))
	})
	return unexplained(all)
}

// maxText is the longest text of a Finding, in bytes. Parts of it come from the API server.
const maxText = 600

func failure(code Code, node, command, format string, args ...any) Finding {
	return finding(Failure, code, node, command, format, args...)
}

func warning(code Code, node, command, format string, args ...any) Finding {
	return finding(Warning, code, node, command, format, args...)
}

func finding(severity Severity, code Code, node, command, format string, args ...any) Finding {
	return Finding{code, severity, terminal.Clean(node, validation.DNS1123SubdomainMaxLength), terminal.Sentence(fmt.Sprintf(format, args...), maxText), command, code.dependsOn()}
}

// commandOn is a command with the names of objects. People copy commands into a shell, so a
// name that no object can have, from a rogue API server, makes no command.
func commandOn(format string, names ...string) string {
	args := make([]any, len(names))
	for i, name := range names {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return ""
		}
		args[i] = name
	}
	return fmt.Sprintf(format, args...)
}

// EventsOf is the command that lists taintlet's Events about a Node, the newest last; empty
// for a name that no Node can have.
func EventsOf(node string) string {
	return commandOn("kubectl --namespace=default events --for=node/%s", node)
}

// reinstall is the command that puts back what the chart or the manifest installs.
func reinstall(i *installation.Installation) string {
	if i.Release != "" {
		return commandOn("helm --namespace=%[1]s get manifest %[2]s | kubectl --namespace=%[1]s apply --filename=-", i.Namespace, i.Release)
	}
	return "kubectl apply --filename=deploy/taintlet.yaml"
}

// hosts finds what the Nodes themselves tell.
func hosts(f Facts) []Finding {
	var all []Finding
	for _, n := range f.Nodes {
		if n.Unreadable != "" {
			all = append(all, failure(RecordUnreadable, n.Name, EventsOf(n.Name), "%s", n.Unreadable))
		}
		for _, c := range n.Contested {
			text := "taintlet does not set it while the condition lasts"
			if c.HasTaint {
				text = "another taint of the condition is on the Node"
			}
			all = append(all, warning(TaintContested, n.Name, EventsOf(n.Name), "others removed the taint of %s; %s", c.Condition, text))
		}
		if n.MistypedPause != "" {
			all = append(all, warning(PauseMistyped, n.Name, commandOn("kubectl annotate --overwrite node %s "+taints.PausedAnnotation+"=true", n.Name),
				"all conditions are paused, because %q in the annotation %s is not one of them", n.MistypedPause, taints.PausedAnnotation))
		}
		if n.Skew.Abs() > MaxSkew {
			all = append(all, warning(ClockSkew, n.Name, commandOn("kubectl describe node %s", n.Name),
				"the host's clock is %s: the times of its conditions and Events are wrong", skewText(n.Skew)))
		}
	}
	return all
}

// MaxSkew is how far a host's clock may be off. Nothing is decided by it; it makes the times
// of conditions and Events wrong.
const MaxSkew = 30 * time.Second

func skewText(skew time.Duration) string {
	if skew > 0 {
		return terminal.Span(skew) + " ahead of the API server's"
	}
	return terminal.Span(-skew) + " behind the API server's"
}
