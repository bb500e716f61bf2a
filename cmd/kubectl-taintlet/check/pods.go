package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
)

// portOf is where the agent listens.
func portOf(pod *corev1.Pod) int {
	if ports := installation.Agent(&pod.Spec).Ports; len(ports) > 0 {
		return int(ports[0].ContainerPort)
	}
	return DefaultPort
}

// agentPods returns the agents' pods.
func (s *scene) agentPods(ctx context.Context) ([]*corev1.Pod, error) {
	return s.pods.once(func() ([]*corev1.Pod, error) { return s.me.Pods(ctx, s.namespace) })
}

// nodeOf is the pod's Node.
func nodeOf(p *corev1.Pod) string {
	if p.Spec.NodeName == "" {
		return p.Name + ", on no Node yet"
	}
	return p.Spec.NodeName
}

// whyNot says why the pod is not ready, as far as Kubernetes knows.
func whyNot(p *corev1.Pod) string {
	if p.DeletionTimestamp != nil {
		return "ending"
	}
	for _, c := range p.Status.ContainerStatuses {
		switch {
		case c.State.Waiting != nil && c.LastTerminationState.Terminated != nil:
			return fmt.Sprintf("%s after %s", word(c.State.Waiting.Reason), endText(c.LastTerminationState.Terminated))
		case c.State.Waiting != nil:
			return word(c.State.Waiting.Reason)
		case c.State.Terminated != nil:
			return endText(c.State.Terminated)
		}
	}
	return ""
}

// endText says how a container ended.
func endText(e *corev1.ContainerStateTerminated) string {
	if e.Reason == "" || e.Reason == "Error" || e.Reason == "Completed" {
		return fmt.Sprintf("exit code %d", e.ExitCode)
	}
	return word(e.Reason)
}

// word is a word of Kubernetes, as a terminal may have it.
func word(text string) string { return terminal.Clean(text, 100) }

// notReady are the Nodes whose agents are not ready, with the reason that Kubernetes knows
// or the agent itself tells.
func notReady(all []*corev1.Pod, asks func(*corev1.Pod) string) (nodes []string) {
	for _, p := range all {
		if isReady, _ := installation.ReadySince(p); isReady && p.DeletionTimestamp == nil {
			continue
		}
		text, why := nodeOf(p), whyNot(p)
		if why == "" {
			why = asks(p)
		}
		if why != "" {
			text += " (" + why + ")"
		}
		nodes = append(nodes, text)
	}
	slices.Sort(nodes)
	return nodes
}

// endedWithin is how long ago an agent may have ended to be named.
const endedWithin = time.Hour

func (s *scene) checkRestarts(ctx context.Context) answer {
	list, err := s.agentPods(ctx)
	if err != nil {
		return skip("whether agents were restarted: the pods cannot be listed")
	}
	var restarted []string
	for _, p := range list {
		for _, c := range p.Status.ContainerStatuses {
			if last := c.LastTerminationState.Terminated; last != nil && time.Since(last.FinishedAt.Time) < endedWithin {
				restarted = append(restarted, fmt.Sprintf("%s (%s, %d restarts)", nodeOf(p), endText(last), c.RestartCount))
			}
		}
	}
	if len(restarted) > 0 {
		slices.Sort(restarted)
		return warn("agents ended in the last hour and were started again: %s", terminal.Listed(restarted))
	}
	return ok("no agent ended in the last hour")
}

// checkOneEach finds Nodes with two agents. One of them writes, and the other waits.
func (s *scene) checkOneEach(ctx context.Context) answer {
	list, err := s.me.Pods(ctx, metav1.NamespaceAll)
	if err != nil {
		return skip("whether each Node has one agent: you may not list the pods of all namespaces")
	}
	var several []string
	for node, pods := range installation.PodsByNode(list) {
		if len(pods) > 1 {
			names := make([]string, len(pods))
			for i, p := range pods {
				names[i] = p.Namespace + "/" + p.Name
			}
			slices.Sort(names)
			several = append(several, fmt.Sprintf("%s (%s)", node, strings.Join(names, ", ")))
		}
	}
	slices.Sort(several)
	if len(several) > 0 {
		return warn("Nodes have more than one agent: %s", terminal.Listed(several))
	}
	last, err := s.lastEvents(ctx, "AgentStandby")
	if standby := slices.Sorted(maps.Keys(last)); err == nil && len(standby) > 0 {
		return warn("in the last hour a second agent was on standby on Nodes: %s", terminal.Listed(standby)).
			but("the Event AgentStandby has the name of the agent; where a pod was just replaced, nothing is to be done")
	}
	return ok("no Node has more than one agent")
}
