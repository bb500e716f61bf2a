package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
)

// declares says that the pod takes the TCP port of its host. The scheduler goes by
// the same: it counts neither other protocols nor init containers that end (HostPorts
// in k8s.io/component-helpers/scheduling).
func declares(p *corev1.Pod, port int) bool {
	containers := slices.Clone(p.Spec.Containers)
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, c)
		}
	}
	for _, c := range containers {
		for _, declared := range c.Ports {
			isOnHost := int(declared.HostPort) == port || p.Spec.HostNetwork && int(declared.ContainerPort) == port
			if isOnHost && (declared.Protocol == "" || declared.Protocol == corev1.ProtocolTCP) {
				return true
			}
		}
	}
	return false
}

// isAgent says that the pod is one of ours.
func isAgent(p *corev1.Pod, namespace string) bool {
	key, value, _ := strings.Cut(installation.Label, "=")
	return p.Namespace == namespace && p.Labels[key] == value
}

// nameOf is the pod's with its Node's.
func nameOf(p *corev1.Pod) string {
	name := p.Namespace + "/" + p.Name
	if p.Spec.NodeName == "" {
		return name + " (on no Node yet)"
	}
	return fmt.Sprintf("%s (%s)", name, p.Spec.NodeName)
}

// checkPort finds pods that take the agents' port of their host. There the agents stay
// Pending, or keep such a pod from being scheduled. A program that listens without
// being declared is not found: no API knows of it.
func (s *scene) checkPort(ctx context.Context) answer {
	taken, err := s.podsWithPort(ctx)
	switch {
	case err != nil:
		return skip("whether port %d of the hosts is free: the pods cannot be listed: %v", s.port, err)
	case len(taken) > 0:
		return fail("pods declare port %d of their hosts: %s", s.port, terminal.Listed(taken))
	}
	return ok("no pod declares port %d of its host", s.port)
}

// podsWithPort returns the pods that take the port of their host, without the agents'.
func (s *scene) podsWithPort(ctx context.Context) (taken []string, err error) {
	options := metav1.ListOptions{FieldSelector: "status.phase!=Succeeded,status.phase!=Failed"}
	err = installation.Each(ctx, s.me.CoreV1().Pods(metav1.NamespaceAll).List, options, func(pod *corev1.Pod) {
		if declares(pod, s.port) && !isAgent(pod, s.namespace) {
			taken = append(taken, nameOf(pod))
		}
	})
	slices.Sort(taken)
	return taken, err
}
