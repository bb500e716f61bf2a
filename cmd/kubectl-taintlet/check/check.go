// Package check finds out whether the installation works, or would: it queries the API server,
// changes nothing, and names the remedy of each failure and the page that explains it. The checks
// in reads.go read objects, and those in tries.go make dry runs.
package check

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/taints"
)

// The results of a check.
const (
	OK      status.Severity = "OK"
	Warning                 = status.Warning // works, but not as well as it could
	Failed                  = status.Failure
	Skipped status.Severity = "Skipped" // it could not be checked, for the reason given
)

// Line is the answer of one check: a Finding, or that there is none.
type Line struct {
	// Group is the subject of the check, and Name tells it from all other checks.
	Group          string `json:"group"`
	Name           string `json:"name"`
	status.Finding `json:",inline"`
	// Remedy says what to do, and Link is the page that explains it.
	Remedy string `json:"remedy,omitempty"`
	Link   string `json:"link,omitempty"`
}

func line(severity status.Severity, format string, args ...any) Line {
	return Line{Finding: status.Finding{Severity: severity, Text: fmt.Sprintf(format, args...)}}
}

// but returns the line with its own remedy instead of that of the check.
func (l Line) but(remedy string) Line {
	l.Remedy = remedy
	return l
}

// untold is why a check has no answer, where nothing failed.
type untold string

func (u untold) Error() string { return string(u) }

// clean makes a text that has parts of others safe for a terminal.
func clean(text string) string { return terminal.Sentence(text, status.MaxText) }

// Report is what all checks found. Fields are only ever added within a version.
type Report struct {
	metav1.TypeMeta `json:",inline"`

	Lines []Line `json:"lines"`
	// Stopped: the last check failed, and the checks that need it were not made.
	Stopped bool `json:"stopped,omitempty"`
}

// DeepCopyObject makes the Report an object that kubectl's printers print.
func (r *Report) DeepCopyObject() runtime.Object { return new(*r) }

// Kind is the kind of a Report as JSON.
const Kind = "CheckReport"

// docs is where the documentation is. A Link is a file in it and a heading.
const docs = "https://github.com/taintlet/taintlet/blob/main/"

// check is one check. Its answer is the first of these that exists:
//   - the Findings with its codes,
//   - an error from reading its part of the installation,
//   - the Nodes that were noted under its name,
//   - the answer of ask,
//   - that it passed.
type check struct {
	name string
	// remedy and link are for a check that fails.
	remedy, link string
	// whether is the question, for a check that cannot be made.
	whether string
	codes   []status.Code
	part    string
	// ofConfig checks need the configuration of the agents, ofAgents checks need agents.
	ofConfig, ofAgents bool
	// said is what the Nodes have in common of which something was said.
	said string
	// An error of ask is what keeps it from an answer. An empty Line is fine.
	ask  func(*scene, context.Context) (Line, error)
	fine string
	// isBase: where it fails, none of those that follow can tell anything of an installation.
	isBase bool
	// isBefore checks run before an installation only, isAlways checks before and after it.
	isBefore, isAlways bool
}

// listed returns the question of a check that lists faults.
func listed(severity status.Severity, wrong string, list func(*scene, context.Context) ([]string, error)) func(*scene, context.Context) (Line, error) {
	return func(s *scene, ctx context.Context) (Line, error) {
		found, err := list(s, ctx)
		if err != nil || len(found) == 0 {
			return Line{}, err
		}
		return line(severity, wrong, terminal.Listed(found)), nil
	}
}

// group is the checks of one thing, in the order in which they are made.
type group struct {
	name   string
	checks []check
}

func groups() []group {
	return []group{
		{"cluster", clusterChecks()},
		{"installation", []check{
			{name: "creatable", whether: "whether you may create the objects of taintlet", ask: (*scene).checkCreatable, isBefore: true, link: "deploy/README.md#permissions",
				remedy: "install as an administrator of the cluster: to create a role, an account needs the role's permissions or the verb escalate"},
			{name: "namespace", whether: "whether the namespace accepts the agents' pods", ask: (*scene).checkNamespace, isBefore: true, link: "deploy/README.md#install",
				remedy: "label the namespace pod-security.kubernetes.io/enforce=privileged: no other level allows hostNetwork and hostPID"},
		}},
		{"permissions", []check{
			{name: "granted", whether: "whether the agents may do what they need", codes: []status.Code{status.PermissionMissing}, part: installation.PartPermissions, fine: "the agents may do what they need", link: "deploy/README.md#permissions",
				remedy: "apply the manifest or upgrade the chart again: its roles and their bindings are incomplete"},
			{name: "bounded", whether: "whether the agents may do more than they need", ask: listed(Warning, "the agents' account may do more than it needs: %s", (*scene).exceeding), fine: "the agents may not read Secrets, nor create or delete pods and Nodes", link: "deploy/README.md#permissions",
				remedy: "find the role binding that grants this and remove it: taintlet needs none but its own"},
		}},
		{"admission policies", policyChecks()},
		{"configuration", configurationChecks()},
		{"agents", agentChecks()},
		{"hosts", hostChecks()},
	}
}

func clusterChecks() []check {
	return []check{
		{name: "version", whether: "whether Kubernetes is recent enough", ask: (*scene).checkVersion, isAlways: true, link: "deploy/README.md#deploying-taintlet",
			remedy: "taintlet needs Kubernetes 1.30 or later, and an API server that answers"},
		{name: "nodes", ask: (*scene).checkNodes, isAlways: true, isBase: true, link: "deploy/README.md#permissions",
			remedy: "use an account that may list nodes"},
		{name: "validating", whether: "whether ValidatingAdmissionPolicy is served", ask: serves("validatingadmissionpolicies", line(OK, "ValidatingAdmissionPolicy is served"), line(Failed, "ValidatingAdmissionPolicy is not served")), isBefore: true, link: "deploy/README.md#permissions",
			remedy: "taintlet is not safe to install without ValidatingAdmissionPolicy: upgrade to Kubernetes 1.30"},
		{name: "mutating", whether: "whether MutatingAdmissionPolicy is served", ask: serves(installation.MutatingPolicies, line(OK, "MutatingAdmissionPolicy is served: the well-known taints can be kept"), line(Warning, "MutatingAdmissionPolicy is not served: the well-known taints cannot be kept")), isBefore: true, link: keepLink,
			remedy: "upgrade to Kubernetes 1.36, or switch MutatingAdmissionPolicy on (1.34, 1.35), to keep the well-known taints; until then omit deploy/keep.yaml, and stand-ins are used"},
		{name: "port", whether: "whether the port of the hosts is free", ask: (*scene).checkPort, isBefore: true, link: "deploy/README.md#ports",
			remedy: "choose a port that is free on all hosts: port in the chart's values; in deploy/taintlet.yaml --listen, containerPort and the Service. Then check again with --port"},
		{name: "installed", codes: []status.Code{status.NotInstalled}, fine: "taintlet is installed", isBase: true, link: "deploy/README.md#install",
			remedy: "install it, or name its namespace by --namespace. Nodes keep the taints that they have until agents run again"},
		{name: "images", codes: []status.Code{status.VersionsDiffer}, part: installation.PartPods, fine: "all agents are of the same version", link: "deploy/README.md#upgrade",
			remedy: "wait for the rollout, or find the pods that it does not replace"},
		{name: "program", codes: []status.Code{status.ProgramVersionDiffers}, part: installation.PartPods, fine: "this program and the agents are from the same release, or are not from a release", link: "deploy/README.md#the-plugin",
			remedy: "use the plugin of the agents' release: another release can misread the configuration and the record"},
	}
}

const (
	policyLink   = "deploy/README.md#permissions"
	policyRemedy = "apply the manifest or upgrade the chart again: without its policies a stolen token can change every Node"
	keepLink     = "docs/living-with-kubernetes.md#who-owns-a-taint"
)

func policyChecks() []check {
	return []check{
		{name: "policies-refuse", whether: "whether the policies are in force", ask: (*scene).checkRefused, link: policyLink,
			remedy: policyRemedy},
		{name: "policies", codes: []status.Code{status.PolicyMissing, status.PolicyNotInForce}, part: installation.PartPolicies, fine: "the admission policies have their bindings", link: policyLink,
			remedy: policyRemedy},
		{name: "policy-rules", whether: "whether the policies allow the taints of the rules", ofConfig: true, ask: (*scene).checkRulesAllowed, link: "deploy/README.md#tune",
			remedy: "upgrade the chart, which writes both; with kubectl or Kustomize, add the pairs and their stand-ins to the variable wantedPairs of the policy taintlet-nodes"},
		{name: "policies-unchanged", codes: []status.Code{status.PolicyChanged}, part: installation.PartPolicies, fine: "the policies were not changed by hand", link: policyLink,
			remedy: "apply the manifest or upgrade the chart again, and make your changes in its values"},
		{name: "keep-effect", whether: "whether the policy " + taints.KeepPolicyName + " works", part: installation.PartPolicies, ask: (*scene).checkKeep, link: "docs/troubleshooting.md#the-policy-taintlet-keep-fails",
			remedy: "apply deploy/keep.yaml of this release, or upgrade the chart again"},
	}
}

func configurationChecks() []check {
	return []check{
		{name: "configuration", whether: "whether the configuration is valid", codes: []status.Code{status.ConfigurationMissing, status.ConfigurationInvalid, status.ConfigurationRefused}, part: installation.PartConfig, ofConfig: true, fine: "the configuration is valid", link: "docs/troubleshooting.md#the-configuration-is-refused",
			remedy: "correct the named field; kubectl taintlet config --config FILE checks a file. Until then the last valid configuration stays in force, and an agent that restarts exits"},
		{name: "in-force", codes: []status.Code{status.ConfigurationNotInForce}, part: installation.PartConfig, fine: "all agents use the configuration of the ConfigMap", link: "deploy/README.md#tune",
			remedy: "wait: the kubelet updates the agent's file about a minute after the ConfigMap. If an agent does not follow, its log contains the reason"},
		{name: "rules", codes: []status.Code{status.ConditionWithoutRule}, part: installation.PartConfig, fine: "each condition has a rule that sets a taint", link: "docs/configuration.md#rules",
			remedy: "if this is not intended, remove the rule with effect None, or the empty list of rules: then the default rule applies"},
		{name: "overrides", whether: "whether each override applies to a Node", ofConfig: true, ask: listed(Warning, "overrides apply to no Node: %s", (*scene).unusedOverrides), fine: "each override applies to a Node", link: "docs/configuration.md#overrides",
			remedy: "correct the labels of its nodeSelector, or its place in the list: only the first override that matches a Node applies. While a pool has no Nodes, this is expected"},
		{name: "disks", whether: "whether the disks of the kubelet and of the container runtime are watched", ofConfig: true, ask: listed(Warning, "no path of disk.paths is known to be on the disk of %s", (*scene).unwatchedDisks), fine: "the disks of the kubelet and of the container runtime are watched", link: "docs/configuration.md#disk",
			remedy: "keep / and /scratch in config.disk.paths: they are on these disks. List directories on other disks in the chart's value disk.mounts"},
		{name: "daemonsets", whether: "which DaemonSets tolerate the taints", part: installation.PartPolicies, ofConfig: true, ask: (*scene).checkDaemonSets, link: "docs/living-with-kubernetes.md#who-owns-a-taint",
			remedy: "add the toleration to the template of each DaemonSet that every Node needs, such as the network plugin's: while a Node has the taint, its pods are neither started nor replaced there"},
		{name: "autoscalers", whether: "how autoscalers treat the taints", ofConfig: true, ask: (*scene).checkAutoscalers, link: "docs/neighbours.md#neighbours",
			remedy: "for cluster-autoscaler, set keys: Own and keyPrefix: status-taint.cluster-autoscaler.kubernetes.io in the configuration"},
		{name: "slots", whether: "whether the eviction slots exist", codes: []status.Code{status.SlotMissing}, part: installation.PartSlots, ofConfig: true, fine: "no eviction slot of the configuration is missing", link: "deploy/README.md#eviction",
			remedy: "helm upgrade creates the Leases again; to turn eviction off, remove the rules for Critical and evict.slots from the chart's values"},
	}
}

func agentChecks() []check {
	notRunning := []status.Code{status.DaemonSetMissing, status.DaemonSetSelectsNoNode, status.AgentMissing, status.AgentNotStarted, status.AgentNotReady}
	return []check{
		{name: "daemonset", whether: "whether all agents are ready", codes: notRunning, part: installation.PartPods, ask: (*scene).checkDaemonSet, link: "docs/troubleshooting.md#the-agents-pod-is-not-ready",
			remedy: "list the pods that are not ready: kubectl get pods --all-namespaces -o wide --selector " + installation.Label},
		{name: "signs", codes: []status.Code{status.AgentSilent, status.RecordUnreadable}, ask: (*scene).checkSigns, link: "docs/troubleshooting.md#the-agents-pod-is-not-ready",
			remedy: "read the log of the agent on that Node"},
		{name: "restarts", codes: []status.Code{status.AgentOutOfMemory, status.AgentRestarted}, part: installation.PartPods, fine: "no agent ended in the last hour", link: "docs/troubleshooting.md#the-agents-pod-is-not-ready",
			remedy: "read the log of the container before: kubectl logs --previous. After OOMKilled, raise resources.limits.memory in the chart's values"},
		{name: "one-each", whether: "whether each Node has one agent", codes: []status.Code{status.SeveralAgents}, part: installation.PartPods, fine: "no Node has more than one agent", link: "docs/living-with-kubernetes.md#two-agents-on-one-node",
			remedy: "remove one of the installations, or the pod that belongs to no DaemonSet"},
		{name: "service", whether: "whether the Service lists the agents", ask: (*scene).checkService, link: "docs/network.md#peers",
			remedy: "apply the manifest or upgrade the chart again: without the Service the agents have no peers, and so no fleet brake"},
		{name: "dns-pods", whether: "which DNS pods the agents probe", ask: (*scene).checkDNSPods, link: "docs/network.md#peers",
			remedy: "specify where the pods of the cluster's DNS are: dnsPods in the chart's values, --dns-pods in deploy/taintlet.yaml; or switch the class pods off"},
	}
}

func hostChecks() []check {
	return []check{
		{name: "host-network", whether: "whether the agents have hostNetwork", ask: hasNamespace("hostNetwork", "routes", func(s corev1.PodSpec) bool { return s.HostNetwork }), link: "docs/troubleshooting.md#a-condition-is-unknown",
			remedy: "set hostNetwork: true in the DaemonSet's template, as the chart does"},
		{name: "host-pid", whether: "whether the agents have hostPID", said: "agents report that they are not in the host's PID namespace", ask: hasNamespace("hostPID", "limits of PIDs and mounts", func(s corev1.PodSpec) bool { return s.HostPID }), link: "docs/troubleshooting.md#a-condition-is-unknown",
			remedy: "set hostPID: true in the DaemonSet's template, as the chart does. If it is already set, the Node itself is a container, and its own PID limit is not detected"},
		{name: "kernel", whether: "whether the kernels have PSI", said: "kernels are too old for PSI", fine: "no kernel is too old for PSI (Linux 4.20)", isAlways: true, link: "docs/configuration.md#memory",
			remedy: "taintlet works without pressure stall information (PSI), but does not detect stalls; use Linux 4.20 or later"},
		{name: "unknown", whether: "whether the agents can read all conditions", ofAgents: true, said: "agents cannot read all conditions", fine: "the agents can read all conditions", link: "docs/troubleshooting.md#a-condition-is-unknown",
			remedy: "read the condition's message: kubectl describe node"},
		{name: "clock", codes: []status.Code{status.ClockSkew}, fine: "the hosts' clocks are within 30 s of the API server's", link: "docs/how-it-decides.md#what-survives-a-restart",
			remedy: "synchronise the hosts' clocks (NTP). taintlet's decisions do not depend on them, but the times of its conditions and Events are wrong"},
		{name: "taints", codes: []status.Code{status.TaintContested, status.PauseMistyped}, fine: "no other program removes taintlet's taints, and each pause names valid conditions", link: "docs/living-with-kubernetes.md#when-someone-removes-a-taint",
			remedy: "find out who removes the taint, and pause the Node instead"},
		{name: "kubelet", whether: "whether the kubelets agree", ofAgents: true, said: "conditions are bad for the kubelet and good for taintlet", fine: "no kubelet reports trouble that taintlet does not detect", link: "docs/living-with-kubernetes.md#who-owns-a-taint",
			remedy: "compare the kubelet's thresholds (evictionHard) with taintlet's: the kubelet evicts where taintlet detects no trouble. For 5 minutes after the trouble, this is expected"},
	}
}

// Options choose the checks.
type Options struct {
	Config *rest.Config
	Out    io.Writer
	// Output is one of status.Formats; any other: text.
	Output    string
	Namespace string
	Pre       bool
	// Port is the port of the hosts where the agents are to listen. 0: DefaultPort.
	Port int
	// Version is that of this program.
	Version string
	// Wait repeats the checks until none fails and the roll-out is over, or until the context ends.
	// Err receives what Run waits for.
	Wait bool
	Err  io.Writer
}
