package status

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
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

// recently is for how long the end of an agent that runs again is worth a line.
const recently = time.Hour

// agents finds the agents that do not run, those that are too many and those that are silent.
func agents(f facts) []Finding {
	i := f.installation
	var all []Finding
	if len(i.MayNot) > 0 {
		all = append(all, failure(PermissionMissing, "", reinstall(i), "the agents' account %s/%s is not allowed to %s: the API server refuses its agents",
			i.Namespace, installation.Account, strings.Join(i.MayNot, ", ")))
	}
	knows := i.Knows(installation.PartPods) && i.Knows(installation.PartDaemonSet)
	if knows && len(i.DaemonSets) == 0 && len(i.Pods) == 0 {
		return append(all, noDaemonSet(f))
	}
	byNode := installation.PodsByNode(i.Pods)
	if knows {
		all = append(all, missing(f, byNode)...)
	}
	for _, pod := range i.Pods {
		if p, found := podFinding(f, pod); found {
			all = append(all, p)
		}
	}
	for node, pods := range byNode {
		if len(pods) > 1 {
			all = append(all, failure(SeveralAgents, node,
				commandOn("kubectl --namespace=%s get pods --field-selector=spec.nodeName=%s --selector="+installation.Label, i.Namespace, node),
				"%d agents' pods are on this Node, and one writes it: %s", len(pods), strings.Join(installation.Names(pods), ", ")))
		}
	}
	return append(all, silent(f, byNode)...)
}

func silent(f facts, byNode map[string][]*corev1.Pod) (all []Finding) {
	for _, n := range f.nodes {
		if pods := byNode[n.Name]; n.isSilent && (len(pods) > 0 || !f.installation.Knows(installation.PartPods)) {
			command := commandOn("kubectl describe node %s", n.Name)
			if len(pods) > 0 {
				command = commandOn("kubectl --namespace=%s logs --tail=20 %s", f.installation.Namespace, pods[0].Name)
			}
			all = append(all, failure(AgentSilent, n.Name, command, "the agent is silent%s", lastSign(f, n.Name)))
		}
	}
	return all
}

// noDaemonSet is the Finding of a namespace without agents: taintlet is not installed there, or
// a part of it is left.
func noDaemonSet(f facts) Finding {
	i := f.installation
	code, text, command := DaemonSetMissing, fmt.Sprintf("there is no DaemonSet of taintlet in namespace %s, so no agent runs", i.Namespace), reinstall(i)
	if i.Knows(installation.PartConfig) && i.Config == nil {
		code, text, command = NotInstalled, fmt.Sprintf("taintlet is not installed in namespace %s", i.Namespace), commandOn("kubectl taintlet check --pre --namespace=%s", i.Namespace)
	}
	if len(i.Elsewhere) > 0 {
		text += "; it is in " + strings.Join(i.Elsewhere, ", ")
		command = commandOn("kubectl taintlet status --namespace=%s", i.Elsewhere[0])
	}
	var last time.Time
	for _, n := range f.nodes {
		if n.LastSign != nil && n.LastSign.After(last) {
			last = *n.LastSign
		}
	}
	if !last.IsZero() {
		text += "; the last sign of an agent was " + ago(f.now, last)
	}
	return failure(code, "", command, "%s", text)
}

// missing finds Nodes without a pod: those that an agent has written, and those of which only
// the DaemonSet tells.
func missing(f facts, byNode map[string][]*corev1.Pod) []Finding {
	i := f.installation
	describe := commandOn("kubectl --namespace=%s describe daemonset "+installation.Account, i.Namespace)
	refused := newestMessage(f, i.Refused, installation.Account)
	var all []Finding
	for _, n := range f.nodes {
		if len(byNode[n.Name]) == 0 {
			all = append(all, failure(AgentMissing, n.Name, describe, "no agent's pod is on this Node%s%s", lastSign(f, n.Name), refused))
		}
	}
	if len(i.DaemonSets) == 0 {
		return append(all, failure(DaemonSetMissing, "", reinstall(i), "there is no DaemonSet of taintlet in namespace %s: its pods are not replaced when they end", i.Namespace))
	}
	for _, d := range i.DaemonSets {
		desired, current := d.Status.DesiredNumberScheduled, d.Status.CurrentNumberScheduled
		switch {
		case desired == 0:
			all = append(all, failure(DaemonSetSelectsNoNode, "", describe, "the DaemonSet %s selects no Node", d.Name))
		case current < desired && len(all) == 0:
			all = append(all, failure(AgentMissing, "", describe, "%d of %d Nodes have no agent's pod%s", desired-current, desired, refused))
		}
	}
	return all
}

func podFinding(f facts, pod *corev1.Pod) (Finding, bool) {
	i, node := f.installation, pod.Spec.NodeName
	describe := commandOn("kubectl --namespace=%s describe pod %s", i.Namespace, pod.Name)
	logs := commandOn("kubectl --namespace=%s logs --tail=20 %s", i.Namespace, pod.Name)
	previous := commandOn("kubectl --namespace=%s logs --tail=20 --previous %s", i.Namespace, pod.Name)
	isReady, since := installation.ReadySince(pod)
	container, whyPending := installation.AgentStatus(pod), installation.WhyNotScheduled(pod)
	switch {
	case pod.DeletionTimestamp != nil: // another one takes its place
		return Finding{}, false
	case whyPending != "":
		return failure(AgentPending, node, describe, "the pod %s is not scheduled: %s", pod.Name, whyPending), true
	case container == nil && !isReady:
		return failure(AgentNotStarted, node, describe, "the kubelet has not started the pod %s, made %s%s",
			pod.Name, ago(f.now, pod.CreationTimestamp.Time), reasonOf(pod.Status.Reason, pod.Status.Message)), true
	case container == nil:
		return Finding{}, false
	}
	waiting, ended := container.State.Waiting, cmp.Or(container.State.Terminated, container.LastTerminationState.Terminated)
	code, end, command := AgentRestarted, "", describe
	if ended != nil {
		code, end = endOf(*ended, ago(f.now, ended.FinishedAt.Time))
		command = previous
	}
	count := terminal.Count(int(container.RestartCount), "restart")
	switch isRunning := waiting == nil && container.State.Terminated == nil; {
	case !isRunning:
		if waiting != nil {
			end = terminal.With("is waiting"+reasonOf(waiting.Reason, waiting.Message), "; it ", end)
		}
		if code == AgentRestarted {
			code = AgentNotStarted
		}
		return failure(code, node, command, "the agent in the pod %s %s; %s%s", pod.Name, end, count, lastSign(f, node)), true
	case !isReady: // the agent says why, or else the kubelet
		why := cmp.Or(reasonOf(i.Said[pod.Name], ""), newestMessage(f, i.PodEvents, pod.Name))
		return failure(AgentNotReady, node, logs, "the pod %s is not ready%s%s%s", pod.Name, forSince(f.now, since), why, lastSign(f, node)), true
	case ended != nil && f.now.Sub(ended.FinishedAt.Time) < recently:
		return warning(code, node, command, "the agent %s and runs again: %s", end, count), true
	}
	return Finding{}, false
}

// endOf says how and when a container ended.
func endOf(e corev1.ContainerStateTerminated, when string) (code Code, text string) {
	const fatal = 128 // and the number of the signal, as a shell has it
	switch {
	case e.Reason == "OOMKilled":
		return AgentOutOfMemory, "ended " + when + " out of memory (OOMKilled)"
	case e.Signal > 0:
		return AgentRestarted, fmt.Sprintf("ended %s by signal %d", when, e.Signal)
	case e.ExitCode > fatal:
		return AgentRestarted, fmt.Sprintf("ended %s by signal %d (exit code %d)", when, e.ExitCode-fatal, e.ExitCode)
	}
	return AgentRestarted, fmt.Sprintf("ended %s with exit code %d", when, e.ExitCode)
}

func reasonOf(reason, message string) string {
	text := strings.Trim(reason+": "+message, ": ")
	if text == "" {
		return ""
	}
	return ": " + text
}

// newestMessage is what the newest of some Events about an object says.
func newestMessage(f facts, all []*corev1.Event, name string) string {
	newest := &corev1.Event{}
	for _, e := range all {
		if e.InvolvedObject.Name == name && f.now.Sub(installation.At(e)) < recently && !installation.At(e).Before(installation.At(newest)) {
			newest = e
		}
	}
	return reasonOf("", newest.Message)
}

func lastSign(f facts, node string) string {
	at, found := slices.BinarySearchFunc(f.nodes, node, func(n Node, name string) int { return strings.Compare(n.Name, name) })
	if !found || f.nodes[at].LastSign == nil {
		return ""
	}
	return "; the agent last wrote the Node " + ago(f.now, *f.nodes[at].LastSign)
}

func ago(now, at time.Time) string { return age(now, at) + " ago" }

func forSince(now, since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return " for " + age(now, since)
}

func configuration(f facts, cfg *config.Config, invalid error) []Finding {
	i := f.installation
	all := refused(f)
	if !i.Knows(installation.PartConfig) {
		return all
	}
	edit := commandOn("kubectl --namespace=%s edit configmap "+installation.Account, i.Namespace)
	if i.Release != "" { // the next upgrade would undo an edit
		edit = commandOn("helm --namespace=%s get values %s", i.Namespace, i.Release)
	}
	if i.Config == nil {
		if len(i.DaemonSets) == 0 {
			return all // nothing is installed here, which is told
		}
		return append(all, failure(ConfigurationMissing, "", reinstall(i), "the ConfigMap %s/%s has no %s: new agents have no configuration",
			i.Namespace, installation.Account, installation.ConfigKey))
	}
	if invalid != nil {
		return append(all, failure(ConfigurationInvalid, "", edit, "the ConfigMap %s/%s is invalid, so running agents keep their configuration, and new agents do not start: %v",
			i.Namespace, installation.Account, invalid))
	}
	all = append(all, notInForce(f)...)
	var without []string
	for _, name := range cfg.WithoutTaint() {
		without = append(without, string(name))
	}
	if len(without) > 0 {
		all = append(all, warning(ConditionWithoutRule, "", edit, "no rule sets a taint for %s: taintlet only reports what it finds", strings.Join(without, ", ")))
	}
	return all
}

// notInForce finds the agents that use another configuration than that of the ConfigMap. They read
// a change within about a minute. The configuration of a silent agent is not known.
func notInForce(f facts) []Finding {
	newest, agents, late := config.HashOf([]byte(*f.installation.Config)), 0, 0
	var old []string
	for _, n := range f.nodes {
		if n.Config == "" || n.isSilent {
			continue
		}
		agents++
		if n.Config != newest {
			late++
			old = append(old, n.Config)
		}
	}
	if late == 0 {
		return nil
	}
	slices.Sort(old)
	return []Finding{warning(ConfigurationNotInForce, "", commandOn("kubectl taintlet check --wait --namespace=%s", f.installation.Namespace),
		"%d of %d agents use configuration %s, newest is %s", late, agents, terminal.Listed(slices.Compact(old)), newest)}
}

// refused finds the agents whose newest Event about their configuration is a refusal. The end of
// the agent that wrote it ends it too. Agents read the file up to a minute after the ConfigMap has
// changed.
func refused(f facts) (all []Finding) {
	newest := map[string]*corev1.Event{}
	for _, e := range f.installation.Events {
		node := e.InvolvedObject.Name
		isOurs := e.Reason == string(ConfigurationRefused) || e.Reason == "ConfigurationReloaded"
		if isOurs && (newest[node] == nil || !installation.At(e).Before(installation.At(newest[node]))) {
			newest[node] = e
		}
	}
	for node, e := range newest {
		if e.Reason == string(ConfigurationRefused) && !installation.IsOver(e, f.installation.Pods) {
			all = append(all, failure(ConfigurationRefused, node, EventsOf(node), "%s: %s", ago(f.now, installation.At(e)), e.Message))
		}
	}
	return all
}

func slots(f facts, cfg *config.Config) []Finding {
	i := f.installation
	if !i.Knows(installation.PartSlots) || cfg == nil || !usesSlots(cfg, *i.Config) {
		return nil
	}
	there := map[string]bool{}
	for _, lease := range i.Slots {
		there[lease.Name] = true
	}
	var missing []string
	for number := range cfg.Eviction.Slots {
		if name := fmt.Sprint(apiserver.SlotPrefix, number); !there[name] {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []Finding{failure(SlotMissing, "", reinstall(i), "%d of %d eviction slots are missing in namespace %s, so fewer Nodes can evict: the Leases %s",
		len(missing), cfg.Eviction.Slots, i.Namespace, strings.Join(missing, ", "))}
}

// usesSlots: a rule evicts, or the file asks for slots as the chart does.
func usesSlots(cfg *config.Config, text string) bool {
	policy := cfg.Policy()
	return slices.ContainsFunc(policy.Conditions, func(c decide.Condition) bool { return policy.HasRule(c.Name, probes.Critical) }) || strings.Contains(text, "slots:")
}

// versions finds agents of several versions, and another version than that of this program.
func versions(f facts) []Finding {
	i := f.installation
	images, counted := installation.Images(i.Pods)
	switch {
	case len(images) > 1:
		return []Finding{warning(VersionsDiffer, "", commandOn("kubectl --namespace=%s rollout status daemonset "+installation.Account, i.Namespace), "agents are of %d versions: %s", len(images), counted)}
	case len(images) == 1:
		agents, program := installation.ReleaseOf(images[0]), installation.ReleaseOf(f.version)
		if agents != "" && program != "" && agents != program {
			return []Finding{warning(ProgramVersionDiffers, "", "kubectl taintlet version", "the agents are of version %s and this program is of version %s", agents, program)}
		}
	}
	return nil
}

// policies finds admission policies that are missing, not in force or changed by hand, by
// their objects. kubectl taintlet check tries them.
func policies(f facts, cfg *config.Config) []Finding {
	i := f.installation
	if !i.Knows(installation.PartPolicies) {
		return nil
	}
	var all []Finding
	for _, name := range required(i, cfg) {
		all = append(all, policy(f, name, i.Validating, i.ValidatingBindings, true)...)
	}
	if i.HasKeep() { // it may be left out, and not one of its two objects
		all = append(all, policy(f, taints.KeepPolicyName, i.Mutating, i.MutatingBindings, false)...)
	}
	return all
}

// keepFails finds out whether agents have noticed that the policy which keeps taints fails. It
// returns one Finding, because it is one policy. It ignores silent agents, whose reports may be
// outdated.
func keepFails(f facts) []Finding {
	text := ""
	var nodes []string
	for _, n := range f.nodes {
		if n.keepFails != "" && !n.isSilent {
			text, nodes = n.keepFails, append(nodes, n.Name)
		}
	}
	if text == "" {
		return nil
	}
	return []Finding{failure(KeepPolicyFails, "", "kubectl taintlet check", "%s. Noticed on %s", text, terminal.Listed(nodes))}
}

// required are the policies of each installation. That of the slots comes with slots.
func required(i *installation.Installation, cfg *config.Config) []string {
	names := []string{"taintlet-nodes", "taintlet-events"}
	if cfg != nil && usesSlots(cfg, *i.Config) {
		names = append(names, "taintlet-leases")
	}
	return names
}

// policy finds what is wrong with one policy and its binding. A policy that validates has to
// deny.
func policy(f facts, name string, all []*admissionv1.ValidatingAdmissionPolicy, bindings []*admissionv1.ValidatingAdmissionPolicyBinding, denies bool) []Finding {
	put := reinstall(f.installation)
	at := slices.IndexFunc(all, func(p *admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == name })
	if at < 0 {
		return []Finding{failure(PolicyMissing, "", put, "the admission policy %s is missing", name)}
	}
	bound := slices.IndexFunc(bindings, func(b *admissionv1.ValidatingAdmissionPolicyBinding) bool { return b.Spec.PolicyName == name })
	why := ""
	if bound < 0 {
		why = ": it has no binding"
	} else if spec := bindings[bound].Spec; denies && !slices.Contains(spec.ValidationActions, admissionv1.Deny) {
		why = fmt.Sprintf(": its binding does not deny (validationActions: %v)", spec.ValidationActions)
	} else if spec.MatchResources != nil && !reflect.DeepEqual(*spec.MatchResources, admissionv1.MatchResources{}) {
		why = " everywhere: its binding selects objects (matchResources)"
	}
	if why != "" {
		return []Finding{failure(PolicyNotInForce, "", put, "the admission policy %s is not in force%s", name, why)}
	}
	var found []Finding
	for number, managed := range [][]metav1.ManagedFieldsEntry{all[at].ManagedFields, bindings[bound].ManagedFields} {
		what := []string{"the", "the binding of the"}[number]
		if manager, when := installation.ChangedByHand(managed); manager != "" {
			found = append(found, warning(PolicyChanged, "", put, "%s admission policy %s was changed by %s %s", what, name, manager, ago(f.now, when)))
		}
	}
	return found
}
