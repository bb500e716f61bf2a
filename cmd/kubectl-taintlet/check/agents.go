package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/cmd/terminal"
)

func (s *scene) checkDaemonSet(context.Context) (Line, error) {
	d, err := s.agents()
	if err != nil {
		return Line{}, err
	}
	switch n := d.Status; {
	case n.NumberReady < n.DesiredNumberScheduled: // of pods that nobody can name
		return line(Failed, "%d of %d agents are ready", n.NumberReady, n.DesiredNumberScheduled), nil
	case n.UpdatedNumberScheduled < n.DesiredNumberScheduled:
		return line(Warning, "%d of %d agents are of the DaemonSet's newest version", n.UpdatedNumberScheduled, n.DesiredNumberScheduled), nil
	default:
		return line(OK, "all %d agents are ready", n.DesiredNumberScheduled), nil
	}
}

func (s *scene) checkSigns(context.Context) (Line, error) {
	if s.report.Summary.Agents == 0 {
		return line(Failed, "no agent has written its Node yet"), nil
	}
	return line(OK, "all agents write their Nodes: %s", s.report.Summary), nil
}

func (s *scene) checkService(ctx context.Context) (Line, error) {
	service, err := s.me.CoreV1().Services(s.Namespace).Get(ctx, account, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return line(Failed, "the Service %s is missing in namespace %s", account, s.Namespace), nil
	case err != nil:
		return Line{}, err
	case service.Spec.ClusterIP != corev1.ClusterIPNone:
		return line(Warning, "the Service %s has the address %s: it must be headless", account, service.Spec.ClusterIP), nil
	}
	ready, _, err := s.endpoints(ctx, s.Namespace, discoveryv1.LabelServiceName+"="+account)
	if err != nil {
		return Line{}, err
	}
	if d, err := s.agents(); err == nil && len(ready) < int(d.Status.NumberReady) {
		return line(Failed, "the Service %s lists %d agents, and %d are ready", account, len(ready), d.Status.NumberReady), nil
	}
	return line(OK, "the Service lists all ready agents: %d", len(ready)), nil
}

// endpoints returns the ready pods of the EndpointSlices with a label, each with its Node, and
// their Services, each once.
func (s *scene) endpoints(ctx context.Context, namespace, selector string) (pods, services []string, err error) {
	found, err := s.me.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, nil, err
	}
	for _, slice := range found.Items {
		services = append(services, slice.Labels[discoveryv1.LabelServiceName])
		for _, e := range slice.Endpoints {
			if *cmp.Or(e.Conditions.Ready, new(true)) { // which is so where nothing else is said
				pods = append(pods, fmt.Sprintf("%s (%s)", cmp.Or(e.TargetRef, &corev1.ObjectReference{}).Name, *cmp.Or(e.NodeName, new(""))))
			}
		}
	}
	slices.Sort(pods)
	slices.Sort(services)
	return slices.Compact(pods), slices.Compact(services), nil
}

// checkDNSPods names the pods that class pods connects to. Without them nothing tells
// that the overlay of a host is broken.
func (s *scene) checkDNSPods(ctx context.Context) (Line, error) {
	where := s.fleet.Installation.DNSPods()
	for _, selector := range where.Selectors() {
		pods, services, err := s.endpoints(ctx, where.Namespace, selector)
		if err != nil {
			return Line{}, err
		}
		if len(pods) > 0 {
			return line(OK, "the agents probe the DNS pods of Service %s in %s: %s", terminal.Listed(services), where.Namespace, terminal.Listed(pods)), nil
		}
	}
	return line(Warning, "no ready DNS pods are found by %s: the agents do not detect when the pod network fails on one Node", where), nil
}

// hasNamespace asks whether the agents' pods have a field by which they see the host.
func hasNamespace(field, what string, has func(corev1.PodSpec) bool) func(*scene, context.Context) (Line, error) {
	return func(s *scene, _ context.Context) (Line, error) {
		d, err := s.agents()
		switch {
		case err != nil:
			return Line{}, err
		case !has(d.Spec.Template.Spec):
			return line(Failed, "the agents lack %s: they do not see the %s of the host", field, what), nil
		}
		return line(OK, "the agents have %s: they see the %s of the host", field, what), nil
	}
}
