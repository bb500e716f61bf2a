package check

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (s *scene) checkDaemonSet(ctx context.Context) answer {
	d, err := s.agents(ctx)
	if err != nil {
		return unread("the DaemonSet of the agents", err)
	}
	switch n := d.Status; {
	case n.NumberReady < n.DesiredNumberScheduled: // of pods that nobody can name
		return fail("%d of %d agents are ready", n.NumberReady, n.DesiredNumberScheduled)
	case n.UpdatedNumberScheduled < n.DesiredNumberScheduled:
		return warn("%d of %d agents are of the DaemonSet's newest version", n.UpdatedNumberScheduled, n.DesiredNumberScheduled)
	default:
		return ok("all %d agents are ready", n.DesiredNumberScheduled)
	}
}

func (s *scene) checkSigns(ctx context.Context) answer {
	all, err := s.allNodes(ctx)
	if err != nil {
		return skip("whether the agents write their Nodes: %v", err)
	}
	if all.report.Summary.Agents == 0 {
		return fail("no agent has written its Node yet")
	}
	return ok("all agents write their Nodes: %s", all.report.Summary)
}

func (s *scene) checkService(ctx context.Context) answer {
	service, err := s.me.CoreV1().Services(s.namespace).Get(ctx, account, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fail("the Service %s is missing in namespace %s", account, s.namespace)
	case err != nil:
		return unread("the Service of the agents", err)
	case service.Spec.ClusterIP != corev1.ClusterIPNone:
		return warn("the Service %s has the address %s: it is to be headless", account, service.Spec.ClusterIP)
	}
	ready, err := s.endpoints(ctx)
	if err != nil {
		return unread("the EndpointSlices of the agents", err)
	}
	d, err := s.agents(ctx)
	if err == nil && ready < int(d.Status.NumberReady) {
		return fail("the Service %s names %d agents, and %d are ready", account, ready, d.Status.NumberReady)
	}
	return ok("the Service names the agents to one another: %d", ready)
}

// endpoints counts the agents that the EndpointSlices name.
func (s *scene) endpoints(ctx context.Context) (int, error) {
	found, err := s.endpointSlices(ctx, s.namespace, discoveryv1.LabelServiceName+"="+account)
	count := 0
	for _, slice := range found {
		for _, endpoint := range slice.Endpoints {
			if isReady(endpoint) {
				count++
			}
		}
	}
	return count, err
}
