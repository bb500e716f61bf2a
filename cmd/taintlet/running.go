package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/taintlet/taintlet/agent/pace"
	"github.com/taintlet/taintlet/cmd/terminal"
	"github.com/taintlet/taintlet/taints/apiserver"
)

const (
	// agentLabel is on the pods of the agents.
	agentLabel = "app.kubernetes.io/name=taintlet"
	// tokenEndsAfter is how long after its deletion a pod's token is still accepted: the
	// API server allows a minute (jwt.DefaultLeeway in pkg/serviceaccount/claims.go), and
	// remembers an answer for 10 s. A pod that is there for longer, such as that of a dead
	// Node, has an agent that can write nothing any more.
	tokenEndsAfter = 75 * time.Second
	// newRole is how long after it was made a role may still be unknown to the API server:
	// that of the Job after an uninstallation is as old as the Job.
	newRole = 10 * time.Second
	// askAgain is how often it is looked whether agents have ended.
	askAgain = time.Second
)

// agents are those whose end a cleanup waits for: one that runs sets again what is
// removed, and takes the removal for a contest.
type agents struct {
	client    *apiserver.Client
	namespace string
	// nodes are the Nodes that are to be cleaned up; empty: all.
	nodes []string
	// wait is how long agents may go on that nobody has told to end.
	wait time.Duration
	out  io.Writer
}

// await waits until no agent can write. Agents that are not about to end are an error
// after the wait. It reports whether it could look: who may not list pods is told so.
func (a agents) await(ctx context.Context) (couldLook bool, err error) {
	isTold := false
	for begin := time.Now(); ; {
		pods, err := a.client.AgentPods(ctx, a.namespace, agentLabel)
		running, ending := a.divide(pods, time.Now())
		switch {
		case apierrors.IsForbidden(err) && time.Since(begin) < min(a.wait, newRole):
		case apierrors.IsForbidden(err):
			_, err = fmt.Fprintf(a.out, "whether agents still run was not looked up: you may not list pods in namespace %s\n", a.namespace)
			return false, err
		case err != nil:
			return false, err
		case len(running)+len(ending) == 0:
			return true, nil
		case len(running) > 0 && time.Since(begin) >= a.wait:
			return true, fmt.Errorf("agents still run, and would set again what is removed: %s; delete the DaemonSet first. Nothing was changed", someOf(running))
		case !isTold:
			isTold = true
			fmt.Fprintf(a.out, "waiting for the end of agents: %s\n", someOf(append(running, ending...)))
		}
		if !pace.Sleep(ctx, askAgain) {
			return true, ctx.Err()
		}
	}
}

// divide returns the pods with an agent that can write: those that go on, and those that
// are about to end.
func (a agents) divide(pods []corev1.Pod, now time.Time) (running, ending []string) {
	for i := range pods {
		pod := &pods[i]
		isMeant := len(a.nodes) == 0 || slices.Contains(a.nodes, pod.Spec.NodeName)
		if !isMeant || pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		name := fmt.Sprintf("%s on %s", pod.Name, pod.Spec.NodeName)
		switch {
		case pod.DeletionTimestamp == nil:
			running = append(running, name)
		case now.Sub(pod.DeletionTimestamp.Time) < tokenEndsAfter:
			ending = append(ending, name)
		}
	}
	return running, ending
}

// someOf names the first of some pods.
func someOf(names []string) string { return terminal.Clean(terminal.Listed(names), maxLine) }
