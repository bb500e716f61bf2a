package status

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
	// Failure: taintlet does not work somewhere, or is not protected.
	Failure Severity = "Failure"
	// Warning: taintlet works, and an operator should look.
	Warning Severity = "Warning"
)

// Finding is one thing that is wrong.
type Finding struct {
	Code     Code     `json:"code,omitempty"`
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

// Code is the name of a kind of Finding. Codes are only ever added; docs/status.md lists them.
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

func unexplained(all []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(all), func(f Finding) bool {
		return slices.ContainsFunc(all, func(other Finding) bool {
			return other.Severity == Failure && slices.Contains(f.DependsOn, other.Code) && (other.Node == "" || other.Node == f.Node)
		})
	})
}

// facts are what is judged.
type facts struct {
	// installation is what the API server has; nil: nobody asked.
	installation *installation.Installation
	// nodes are those that an agent has written.
	nodes   []Node
	now     time.Time
	version string
}

// find returns all Findings that no other one explains: first the Failures, those of the
// installation before those of Nodes, which are sorted by name.
func find(f facts) []Finding {
	f.nodes = slices.SortedFunc(slices.Values(f.nodes), func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	all := append(hosts(f), keepFails(f)...)
	if f.installation != nil {
		cfg, err := f.installation.Configuration()
		all = slices.Concat(all, agents(f), configuration(f, cfg, err), policies(f, cfg), slots(f, cfg), versions(f))
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(min(1, len(a.Node)), min(1, len(b.Node))), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Node, b.Node))
	})
	return unexplained(all)
}

// maxText is the longest text of a Finding, in bytes. Parts of it come from the API server.
const maxText = 600

func failure(code Code, node, command, format string, args ...any) Finding {
	return Finding{code, Failure, terminal.Clean(node, maxName), terminal.Sentence(fmt.Sprintf(format, args...), maxText), command, code.dependsOn()}
}

func warning(code Code, node, command, format string, args ...any) Finding {
	f := failure(code, node, command, format, args...)
	f.Severity = Warning
	return f
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

func reinstall(i *installation.Installation) string {
	if i.Release != "" {
		return commandOn("helm --namespace=%[1]s get manifest %[2]s | kubectl --namespace=%[1]s apply --filename=-", i.Namespace, i.Release)
	}
	return "kubectl apply --filename=deploy/taintlet.yaml"
}

func hosts(f facts) []Finding {
	var all []Finding
	for _, n := range f.nodes {
		if n.Problem != "" {
			all = append(all, failure(RecordUnreadable, n.Name, EventsOf(n.Name), "%s", n.Problem))
		}
		for _, c := range n.Conditions {
			text := "taintlet does not set it until the condition has been OK"
			if len(c.Taints) > 0 {
				text = "another taint of the condition is on the Node"
			}
			if c.RemovedBy != "" {
				all = append(all, warning(TaintContested, n.Name, EventsOf(n.Name), "another program removed the taint of %s; %s", c.Name, text))
			}
		}
		if n.mistypedPause != "" {
			all = append(all, warning(PauseMistyped, n.Name, commandOn("kubectl annotate --overwrite node %s "+taints.PausedAnnotation+"=true", n.Name),
				"all conditions are paused, because %q in the annotation %s is not one of them", n.mistypedPause, taints.PausedAnnotation))
		}
		if skew := time.Duration(n.ClockSkewSeconds) * time.Second; skew.Abs() > maxSkew {
			where := map[bool]string{true: "ahead of", false: "behind"}[skew > 0]
			all = append(all, warning(ClockSkew, n.Name, commandOn("kubectl describe node %s", n.Name),
				"the host's clock is %s %s the API server's: the times of its conditions and Events are wrong", terminal.Span(skew.Abs()), where))
		}
	}
	return all
}

// maxSkew is how far a host's clock may be off. Nothing is decided by it; it makes the times
// of conditions and Events wrong.
const maxSkew = 30 * time.Second
