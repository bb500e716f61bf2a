package status

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
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
		return append(noAgent, AgentMissing, AgentNotStarted, AgentOutOfMemory, AgentNotReady)
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

// facts are what is judged, and the Findings so far.
type facts struct {
	// installation is what the API server has; nil: nobody asked.
	installation *installation.Installation
	// nodes are those that an agent has written.
	nodes   []Node
	now     time.Time
	version string
	found   []Finding
}

// find returns all Findings that no other one explains: first the Failures, those of the
// installation before those of Nodes, which are sorted by name.
func find(f facts) []Finding {
	f.nodes = slices.SortedFunc(slices.Values(f.nodes), func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	f.hosts()
	f.keepFails()
	if f.installation != nil {
		cfg, err := f.installation.Configuration()
		f.agents()
		f.configuration(cfg, err)
		f.policies(cfg)
		f.slots(cfg)
		f.versions()
	}
	slices.SortStableFunc(f.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(min(1, len(a.Node)), min(1, len(b.Node))), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Node, b.Node))
	})
	return unexplained(f.found)
}

// MaxText is the longest text of a Finding or a check, in bytes. Parts come from the API server.
const MaxText = 600

// fail adds a Failure of a Node, or of the whole installation.
func (f *facts) fail(code Code, node, command, format string, args ...any) {
	f.found = append(f.found, Finding{code, Failure, terminal.Clean(node, maxName), terminal.Sentence(fmt.Sprintf(format, args...), MaxText), command, code.dependsOn()})
}

// warn adds a Warning.
func (f *facts) warn(code Code, node, command, format string, args ...any) {
	f.fail(code, node, command, format, args...)
	f.found[len(f.found)-1].Severity = Warning
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

func (f *facts) reinstall() string {
	if i := f.installation; i.Release != "" {
		return commandOn("helm --namespace=%[1]s get manifest %[2]s | kubectl --namespace=%[1]s apply --filename=-", i.Namespace, i.Release)
	}
	return "kubectl apply --filename=deploy/taintlet.yaml"
}

func (f *facts) hosts() {
	for _, n := range f.nodes {
		if n.Problem != "" {
			f.fail(RecordUnreadable, n.Name, EventsOf(n.Name), "%s", n.Problem)
		}
		for _, c := range n.Conditions {
			text := "taintlet does not set it until the condition has been OK"
			if len(c.Taints) > 0 {
				text = "another taint of the condition is on the Node"
			}
			if c.RemovedBy != "" {
				f.warn(TaintContested, n.Name, EventsOf(n.Name), "another program removed the taint of %s; %s", c.Name, text)
			}
		}
		if n.mistypedPause != "" {
			f.warn(PauseMistyped, n.Name, commandOn("kubectl annotate --overwrite node %s "+taints.PausedAnnotation+"=true", n.Name),
				"all conditions are paused, because %q in the annotation %s is not one of them", n.mistypedPause, taints.PausedAnnotation)
		}
		if skew := time.Duration(n.ClockSkewSeconds) * time.Second; skew.Abs() > maxSkew {
			where := map[bool]string{true: "ahead of", false: "behind"}[skew > 0]
			f.warn(ClockSkew, n.Name, commandOn("kubectl describe node %s", n.Name),
				"the host's clock is %s %s the API server's: the times of its conditions and Events are wrong", terminal.Span(skew.Abs()), where)
		}
	}
}

// maxSkew is how far a host's clock may be off. Nothing is decided by it; it makes the times
// of conditions and Events wrong.
const maxSkew = 30 * time.Second

// recently is for how long the end of an agent that runs again is worth a line.
const recently = time.Hour

// agents finds the agents that do not run, those that are too many and those that are silent.
func (f *facts) agents() {
	i := f.installation
	if len(i.MayNot) > 0 {
		f.fail(PermissionMissing, "", f.reinstall(), "the agents' account %s/%s may not %s",
			i.Namespace, installation.Account, terminal.Listed(i.MayNot))
	}
	knows := i.Knows(installation.PartPods) && i.Knows(installation.PartDaemonSet)
	if knows && len(i.DaemonSets) == 0 && len(i.Pods) == 0 {
		f.noDaemonSet()
		return
	}
	byNode := installation.PodsByNode(i.Pods)
	if knows {
		f.missing(byNode)
	}
	for _, pod := range i.Pods {
		f.pod(pod)
	}
	f.several(byNode)
	for _, n := range f.nodes {
		if pods := byNode[n.Name]; n.isSilent && (len(pods) > 0 || !i.Knows(installation.PartPods)) {
			command := commandOn("kubectl describe node %s", n.Name)
			if len(pods) > 0 {
				command = commandOn("kubectl --namespace=%s logs --tail=20 %s", i.Namespace, pods[0].Name)
			}
			f.fail(AgentSilent, n.Name, command, "the agent is silent%s", f.lastSign(n.Name))
		}
	}
}

// several finds the Nodes of these agents that have another one, of whatever namespace.
func (f *facts) several(byNode map[string][]*corev1.Pod) {
	for node, pods := range installation.PodsByNode(slices.Concat(f.installation.Pods, f.installation.Others)) {
		if len(pods) > 1 && len(byNode[node]) > 0 {
			var names []string
			for _, pod := range pods {
				names = append(names, pod.Namespace+"/"+pod.Name)
			}
			slices.Sort(names)
			f.fail(SeveralAgents, node, commandOn("kubectl get pods --all-namespaces --field-selector=spec.nodeName=%s --selector="+installation.Label, node),
				"%d agents' pods are on this Node, and one writes it: %s", len(pods), strings.Join(names, ", "))
		}
	}
}

// noDaemonSet finds a namespace without agents: taintlet is not installed there, or a part of it
// is left.
func (f *facts) noDaemonSet() {
	i := f.installation
	code, text, command := DaemonSetMissing, fmt.Sprintf("there is no DaemonSet of taintlet in namespace %s, so no agent runs", i.Namespace), f.reinstall()
	if i.Knows(installation.PartConfig) && i.Config == nil {
		code, text, command = NotInstalled, fmt.Sprintf("taintlet is not installed in namespace %s", i.Namespace), commandOn("kubectl taintlet check --pre --namespace=%s", i.Namespace)
	}
	if len(i.Others) > 0 {
		elsewhere := i.Others[0].Namespace
		text += "; it is in " + elsewhere
		command = commandOn("kubectl taintlet status --namespace=%s", elsewhere)
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
	f.fail(code, "", command, "%s", text)
}

// missing finds Nodes without a pod: those that an agent has written, and those of which only
// the DaemonSet tells.
func (f *facts) missing(byNode map[string][]*corev1.Pod) {
	i := f.installation
	describe := commandOn("kubectl --namespace=%s describe daemonset "+installation.Account, i.Namespace)
	refused, before := f.newestMessage("DaemonSet", installation.Account), len(f.found)
	for _, n := range f.nodes {
		if len(byNode[n.Name]) == 0 {
			f.fail(AgentMissing, n.Name, describe, "no agent's pod is on this Node%s%s", f.lastSign(n.Name), refused)
		}
	}
	if len(i.DaemonSets) == 0 {
		f.fail(DaemonSetMissing, "", f.reinstall(), "there is no DaemonSet of taintlet in namespace %s: its pods are not replaced when they end", i.Namespace)
	}
	for _, d := range i.DaemonSets {
		desired, current := d.Status.DesiredNumberScheduled, d.Status.CurrentNumberScheduled
		switch {
		case desired == 0:
			f.fail(DaemonSetSelectsNoNode, "", describe, "the DaemonSet %s selects no Node", d.Name)
		case current < desired && len(f.found) == before:
			f.fail(AgentMissing, "", describe, "%d of %d Nodes have no agent's pod%s", desired-current, desired, refused)
		}
	}
}

// pod finds what is wrong with an agent's pod.
func (f *facts) pod(pod *corev1.Pod) {
	i, node := f.installation, pod.Spec.NodeName
	describe := commandOn("kubectl --namespace=%s describe pod %s", i.Namespace, pod.Name)
	logs := commandOn("kubectl --namespace=%s logs --tail=20 %s", i.Namespace, pod.Name)
	previous := commandOn("kubectl --namespace=%s logs --tail=20 --previous %s", i.Namespace, pod.Name)
	isReady, since := installation.ReadySince(pod)
	container := installation.AgentStatus(pod)
	switch {
	case pod.DeletionTimestamp != nil: // another one takes its place
		return
	case container == nil && !isReady:
		f.fail(AgentNotStarted, node, describe, "the pod %s, made %s, has not started%s",
			pod.Name, ago(f.now, pod.CreationTimestamp.Time), reasonOf(pod.Status.Reason, cmp.Or(installation.Condition(pod, corev1.PodScheduled).Message, pod.Status.Message)))
		return
	case container == nil:
		return
	}
	waiting, ended := container.State.Waiting, cmp.Or(container.State.Terminated, container.LastTerminationState.Terminated)
	code, end, command := AgentRestarted, "", describe
	if ended != nil {
		when := ago(f.now, ended.FinishedAt.Time)
		end, command = fmt.Sprintf("ended %s with exit code %d", when, ended.ExitCode), previous
		if ended.Reason == "OOMKilled" {
			code, end = AgentOutOfMemory, "ended "+when+" out of memory (OOMKilled)"
		}
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
		f.fail(code, node, command, "the agent in the pod %s %s; %s%s", pod.Name, end, count, f.lastSign(node))
	case !isReady: // the agent says why, or else the kubelet
		why := cmp.Or(reasonOf(i.Said[pod.Name], ""), f.newestMessage("Pod", pod.Name))
		f.fail(AgentNotReady, node, logs, "the pod %s is not ready%s%s%s", pod.Name, forSince(f.now, since), why, f.lastSign(node))
	case ended != nil && f.now.Sub(ended.FinishedAt.Time) < recently:
		f.warn(code, node, command, "the agent %s and runs again: %s", end, count)
	}
}

func reasonOf(reason, message string) string {
	text := strings.Trim(reason+": "+message, ": ")
	if text == "" {
		return ""
	}
	return ": " + text
}

// newestMessage is what the newest Event about an object says.
func (f *facts) newestMessage(kind, name string) string {
	newest := &corev1.Event{}
	for _, e := range f.installation.Events {
		if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name && f.now.Sub(installation.At(e)) < recently && !installation.At(e).Before(installation.At(newest)) {
			newest = e
		}
	}
	return reasonOf("", newest.Message)
}

func (f *facts) lastSign(node string) string {
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

func (f *facts) configuration(cfg *config.Config, invalid error) {
	i := f.installation
	f.refused()
	edit := commandOn("kubectl --namespace=%s edit configmap "+installation.Account, i.Namespace)
	if i.Release != "" { // the next upgrade would undo an edit
		edit = commandOn("helm --namespace=%s get values %s", i.Namespace, i.Release)
	}
	switch {
	case !i.Knows(installation.PartConfig), i.Config == nil && len(i.DaemonSets) == 0: // where nothing is installed, which is told
		return
	case i.Config == nil:
		f.fail(ConfigurationMissing, "", f.reinstall(), "the ConfigMap %s/%s has no %s: new agents have no configuration",
			i.Namespace, installation.Account, installation.ConfigKey)
		return
	case invalid != nil:
		f.fail(ConfigurationInvalid, "", edit, "the ConfigMap %s/%s is invalid, so running agents keep their configuration, and new agents do not start: %v",
			i.Namespace, installation.Account, invalid)
		return
	}
	f.notInForce()
	var without []string
	for _, name := range cfg.WithoutTaint() {
		without = append(without, string(name))
	}
	if len(without) > 0 {
		f.warn(ConditionWithoutRule, "", edit, "no rule sets a taint for %s: taintlet only reports what it finds", strings.Join(without, ", "))
	}
}

// notInForce finds the agents that use another configuration than that of the ConfigMap. They read
// a change within about a minute. The configuration of a silent agent is not known.
func (f *facts) notInForce() {
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
	if late > 0 {
		slices.Sort(old)
		f.warn(ConfigurationNotInForce, "", commandOn("kubectl taintlet check --wait --namespace=%s", f.installation.Namespace),
			"%d of %d agents use configuration %s, newest is %s", late, agents, terminal.Listed(slices.Compact(old)), newest)
	}
}

// refused finds the agents that have refused a configuration and do not use that of the ConfigMap.
// Agents read the file up to a minute after the ConfigMap has changed.
func (f *facts) refused() {
	i := f.installation
	newest := config.HashOf([]byte(*cmp.Or(i.Config, new(""))))
	for _, n := range f.nodes {
		if said := f.newestMessage("Node", n.Name); said != "" && n.Config != newest {
			f.fail(ConfigurationRefused, n.Name, EventsOf(n.Name), "%s", strings.TrimPrefix(said, ": "))
		}
	}
}

func (f *facts) slots(cfg *config.Config) {
	i := f.installation
	if !i.Knows(installation.PartSlots) || cfg == nil || !usesSlots(cfg, *i.Config) {
		return
	}
	var missing []string
	for number := range cfg.Eviction.Slots {
		name := fmt.Sprint(apiserver.SlotPrefix, number)
		if !slices.ContainsFunc(i.Slots, func(lease *coordinationv1.Lease) bool { return lease.Name == name }) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		f.fail(SlotMissing, "", f.reinstall(), "%d of %d eviction slots are missing in namespace %s, so fewer Nodes can evict: the Leases %s",
			len(missing), cfg.Eviction.Slots, i.Namespace, strings.Join(missing, ", "))
	}
}

// usesSlots: a rule evicts, or the file asks for slots as the chart does.
func usesSlots(cfg *config.Config, text string) bool {
	policy := cfg.Policy()
	return slices.ContainsFunc(policy.Conditions, func(c decide.Condition) bool { return policy.HasRule(c.Name, probes.Critical) }) || strings.Contains(text, "slots:")
}

// versions finds agents of several versions, and another version than that of this program.
func (f *facts) versions() {
	i := f.installation
	images, counted := installation.Images(i.Pods)
	switch {
	case len(images) > 1:
		f.warn(VersionsDiffer, "", commandOn("kubectl --namespace=%s rollout status daemonset "+installation.Account, i.Namespace), "agents are of %d versions: %s", len(images), counted)
	case len(images) == 1:
		agents, program := installation.ReleaseOf(images[0]), installation.ReleaseOf(f.version)
		if agents != "" && program != "" && agents != program {
			f.warn(ProgramVersionDiffers, "", "kubectl taintlet version", "the agents are of version %s and this program is of version %s", agents, program)
		}
	}
}

// policies finds admission policies that are missing, not in force or changed by hand, by
// their objects. kubectl taintlet check tries them.
func (f *facts) policies(cfg *config.Config) {
	i := f.installation
	if !i.Knows(installation.PartPolicies) {
		return
	}
	f.policy("taintlet-nodes", true)
	f.policy("taintlet-events", true)
	if cfg != nil && usesSlots(cfg, *i.Config) {
		f.policy("taintlet-leases", true)
	}
	if i.HasKeep() { // it may be left out, and not one of its two objects
		f.policy(taints.KeepPolicyName, false)
	}
}

// keepFails finds out whether agents have noticed that the policy which keeps taints fails. It
// is one Finding, because it is one policy. Silent agents are ignored, whose reports may be
// outdated.
func (f *facts) keepFails() {
	text := ""
	var nodes []string
	for _, n := range f.nodes {
		if n.keepFails != "" && !n.isSilent {
			text, nodes = n.keepFails, append(nodes, n.Name)
		}
	}
	if text != "" {
		f.fail(KeepPolicyFails, "", "kubectl taintlet check", "%s. Noticed on %s", text, terminal.Listed(nodes))
	}
}

// policy finds what is wrong with one policy and its binding. A policy that validates has to
// deny.
func (f *facts) policy(name string, denies bool) {
	policy, binding, why := f.installation.Policies[name], f.installation.Bindings[name], ""
	switch {
	case policy == nil:
		f.fail(PolicyMissing, "", f.reinstall(), "the admission policy %s is missing", name)
		return
	case binding == nil:
		why = ": it has no binding"
	case denies && !slices.Contains(binding.Spec.ValidationActions, admissionv1.Deny):
		why = fmt.Sprintf(": its binding does not deny (validationActions: %v)", binding.Spec.ValidationActions)
	case binding.Spec.MatchResources != nil && !reflect.DeepEqual(*binding.Spec.MatchResources, admissionv1.MatchResources{}):
		why = " everywhere: its binding selects objects (matchResources)"
	}
	if why != "" {
		f.fail(PolicyNotInForce, "", f.reinstall(), "the admission policy %s is not in force%s", name, why)
		return
	}
	for number, managed := range [][]metav1.ManagedFieldsEntry{policy.ManagedFields, binding.ManagedFields} {
		what := []string{"the", "the binding of the"}[number]
		if manager, when := installation.ChangedByHand(managed); manager != "" {
			f.warn(PolicyChanged, "", f.reinstall(), "%s admission policy %s was changed by %s %s", what, name, manager, ago(f.now, when))
		}
	}
}
