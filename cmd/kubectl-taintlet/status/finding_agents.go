package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
)

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
