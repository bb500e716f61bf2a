package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/taintlet/taintlet/cmd/terminal"
)

// pods are the agents'.
type pods struct{ Items []pod }

// pod is what is used of an agent's pod.
type pod struct {
	Metadata struct {
		Name, Namespace, UID string
		DeletionTimestamp    *time.Time
	}
	Spec struct {
		NodeName   string
		Containers []podContainer
	}
	Status struct {
		Phase             string
		Conditions        []struct{ Type, Status string }
		ContainerStatuses []containerStatus
	}
}

type podContainer struct {
	Name, Image string
	Ports       []struct{ ContainerPort int }
}

// port is where the agent listens.
func (p pod) port() int {
	for _, c := range p.Spec.Containers {
		if c.Name == account && len(c.Ports) > 0 {
			return c.Ports[0].ContainerPort
		}
	}
	return DefaultPort
}

type containerStatus struct {
	Name         string
	RestartCount int
	State        struct{ Waiting, Terminated *ended }
	LastState    struct{ Terminated *ended }
}

// ended is why a container does not run, or did not.
type ended struct {
	Reason     string
	ExitCode   int
	FinishedAt time.Time
}

// agentPods returns the agents' pods.
func (s *scene) agentPods(ctx context.Context) ([]pod, error) {
	return s.pods.once(func() (own []pod, err error) {
		var list pods
		err = s.me.selected(ctx, "/api/v1/namespaces/"+s.namespace+"/pods", label, &list)
		return list.Items, err
	})
}

// isReady reports whether the pod's agent is active and may write its Node.
func (p pod) isReady() bool {
	for _, c := range p.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

// runs reports whether the pod has an agent that goes on.
func (p pod) runs() bool {
	return p.Metadata.DeletionTimestamp == nil && p.Status.Phase != "Succeeded" && p.Status.Phase != "Failed"
}

// node is the pod's Node.
func (p pod) node() string {
	if p.Spec.NodeName == "" {
		return p.Metadata.Name + ", on no Node yet"
	}
	return p.Spec.NodeName
}

// why says why the pod is not ready, as far as Kubernetes knows.
func (p pod) why() string {
	if p.Metadata.DeletionTimestamp != nil {
		return "ending"
	}
	for _, c := range p.Status.ContainerStatuses {
		switch {
		case c.State.Waiting != nil && c.LastState.Terminated != nil:
			return fmt.Sprintf("%s after %s", word(c.State.Waiting.Reason), c.LastState.Terminated)
		case c.State.Waiting != nil:
			return word(c.State.Waiting.Reason)
		case c.State.Terminated != nil:
			return c.State.Terminated.String()
		}
	}
	return ""
}

// String says how the container ended.
func (e *ended) String() string {
	if e.Reason == "" || e.Reason == "Error" || e.Reason == "Completed" {
		return fmt.Sprintf("exit code %d", e.ExitCode)
	}
	return word(e.Reason)
}

// word is a word of Kubernetes, as a terminal may have it.
func word(text string) string { return terminal.Clean(text, 100) }

// notReady are the Nodes whose agents are not ready, with the reason that Kubernetes knows
// or the agent itself tells.
func notReady(all []pod, asks func(pod) string) (nodes []string) {
	for _, p := range all {
		if p.isReady() && p.Metadata.DeletionTimestamp == nil {
			continue
		}
		text := p.node()
		why := p.why()
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

func restartsCheck() check {
	return check{
		name: "restarts", link: "docs/troubleshooting.md#the-agents-pod-is-not-ready",
		remedy: "read the log of the one before: kubectl logs --previous. After OOMKilled, raise resources.limits.memory in the chart's values",
		ask: func(ctx context.Context, s *scene) answer {
			list, err := s.agentPods(ctx)
			if err != nil {
				return skip("whether agents were restarted: the pods cannot be listed")
			}
			var restarted []string
			for _, p := range list {
				for _, c := range p.Status.ContainerStatuses {
					if last := c.LastState.Terminated; last != nil && time.Since(last.FinishedAt) < endedWithin {
						restarted = append(restarted, fmt.Sprintf("%s (%s, %d restarts)", p.node(), last, c.RestartCount))
					}
				}
			}
			if len(restarted) > 0 {
				slices.Sort(restarted)
				return warn("agents ended in the last hour and were started again: %s", listed(restarted))
			}
			return ok("no agent ended in the last hour")
		},
	}
}

// oneEachCheck finds Nodes with two agents. One of them writes, and the other waits.
func oneEachCheck() check {
	return check{
		name: "one-each", link: "docs/living-with-kubernetes.md#two-agents-on-one-node",
		remedy: "remove one of the installations, or the pod that belongs to no DaemonSet",
		ask: func(ctx context.Context, s *scene) answer {
			var list pods
			if err := s.me.selected(ctx, "/api/v1/pods", label, &list); err != nil {
				return skip("whether each Node has one agent: you may not list the pods of all namespaces")
			}
			byNode := map[string][]string{}
			for _, p := range list.Items {
				if p.runs() && p.Spec.NodeName != "" {
					byNode[p.Spec.NodeName] = append(byNode[p.Spec.NodeName], p.Metadata.Namespace+"/"+p.Metadata.Name)
				}
			}
			var several []string
			for node, names := range byNode {
				if len(names) > 1 {
					slices.Sort(names)
					several = append(several, fmt.Sprintf("%s (%s)", node, strings.Join(names, ", ")))
				}
			}
			slices.Sort(several)
			if len(several) > 0 {
				return warn("Nodes have more than one agent: %s", listed(several))
			}
			last, err := s.lastEvents(ctx, "AgentStandby")
			if standby := slices.Sorted(maps.Keys(last)); err == nil && len(standby) > 0 {
				return warn("in the last hour a second agent was on standby on Nodes: %s", listed(standby)).
					but("the Event AgentStandby has the name of the agent; where a pod was just replaced, nothing is to be done")
			}
			return ok("no Node has more than one agent")
		},
	}
}
