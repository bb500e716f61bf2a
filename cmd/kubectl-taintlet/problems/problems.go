// Package problems finds everything that is wrong with an installation and its agents, each
// with the next command. It is pure: it judges what others have read.
package problems

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

// Severity says how bad a Problem is.
type Severity string

// The Severities.
const (
	// Failure: taintlet does not do its work somewhere, or is not protected.
	Failure Severity = "Failure"
	// Warning: it does its work, and a person should look.
	Warning Severity = "Warning"
)

// Problem is one thing that is wrong.
type Problem struct {
	Kind     Kind     `json:"kind"`
	Severity Severity `json:"severity"`
	// Node is the Node that has it; empty: the whole installation.
	Node string `json:"node,omitempty"`
	Text string `json:"text"`
	// Command is the next command; empty: there is none.
	Command string `json:"command,omitempty"`
}

// Kind is what a Problem is called. Kinds are only ever added; docs/status.md lists them.
type Kind string

// The Kinds.
const (
	DaemonSetMissing        Kind = "DaemonSetMissing"
	DaemonSetSelectsNoNode  Kind = "DaemonSetSelectsNoNode"
	AgentMissing            Kind = "AgentMissing"
	AgentPending            Kind = "AgentPending"
	AgentNotStarted         Kind = "AgentNotStarted"
	AgentNotReady           Kind = "AgentNotReady"
	AgentOutOfMemory        Kind = "AgentOutOfMemory"
	AgentRestarted          Kind = "AgentRestarted"
	AgentSilent             Kind = "AgentSilent"
	SeveralAgents           Kind = "SeveralAgents"
	AgentStandby            Kind = "AgentStandby"
	PermissionMissing       Kind = "PermissionMissing"
	RecordUnreadable        Kind = "RecordUnreadable"
	ClockSkew               Kind = "ClockSkew"
	TaintContested          Kind = "TaintContested"
	PauseMistyped           Kind = "PauseMistyped"
	ConfigurationMissing    Kind = "ConfigurationMissing"
	ConfigurationInvalid    Kind = "ConfigurationInvalid"
	ConfigurationRefused    Kind = "ConfigurationRefused"
	ConfigurationNotInForce Kind = "ConfigurationNotInForce"
	ConditionWithoutRule    Kind = "ConditionWithoutRule"
	PolicyMissing           Kind = "PolicyMissing"
	PolicyNotInForce        Kind = "PolicyNotInForce"
	PolicyChanged           Kind = "PolicyChanged"
	KeepPolicyFails         Kind = "KeepPolicyFails"
	SlotMissing             Kind = "SlotMissing"
	VersionsDiffer          Kind = "VersionsDiffer"
	ProgramVersionDiffers   Kind = "ProgramVersionDiffers"
)

// Kinds are all Kinds, in the order in which they are shown.
func Kinds() []Kind {
	return []Kind{
		DaemonSetMissing, DaemonSetSelectsNoNode, PermissionMissing, ConfigurationMissing, ConfigurationInvalid, ConfigurationRefused, ConfigurationNotInForce,
		PolicyMissing, PolicyNotInForce, KeepPolicyFails, PolicyChanged, SlotMissing,
		AgentMissing, AgentPending, AgentNotStarted, AgentOutOfMemory, AgentNotReady, AgentSilent, SeveralAgents, RecordUnreadable,
		AgentStandby, AgentRestarted, TaintContested, PauseMistyped, ClockSkew, ConditionWithoutRule, VersionsDiffer, ProgramVersionDiffers,
	}
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

// Find returns all Problems: first the Failures, those of the installation before those of
// Nodes, which are sorted by name.
func Find(f Facts) []Problem {
	f.Nodes = slices.SortedFunc(slices.Values(f.Nodes), func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	all := append(hosts(f), keepFails(f)...)
	if f.Installation != nil {
		cfg, err := configured(f.Installation)
		all = slices.Concat(all, agents(f), configuration(f, cfg, err), policies(f, cfg), slots(f, cfg), versions(f))
	}
	order := Kinds()
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(strings.Compare(string(a.Severity), string(b.Severity)), slices.Index(order, a.Kind)-slices.Index(order, b.Kind), strings.Compare(a.Node, b.Node))
	})
	return all
}

// maxText is the longest text of a Problem, in bytes. Parts of it come from the API server.
const maxText = 600

func failure(kind Kind, node, command, format string, args ...any) Problem {
	return problem(Failure, kind, node, command, format, args...)
}

func warning(kind Kind, node, command, format string, args ...any) Problem {
	return problem(Warning, kind, node, command, format, args...)
}

func problem(severity Severity, kind Kind, node, command, format string, args ...any) Problem {
	return Problem{kind, severity, terminal.Clean(node, validation.DNS1123SubdomainMaxLength), terminal.Sentence(fmt.Sprintf(format, args...), maxText), command}
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
func hosts(f Facts) []Problem {
	var all []Problem
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
