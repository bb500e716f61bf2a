package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/fleet/dnspods"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
)

// dnsPods is where the agents look for the pods of the cluster's DNS. A DaemonSet that
// cannot be read is taken for the chart's.
func (s *scene) dnsPods(ctx context.Context) dnspods.Where {
	d, err := s.agents(ctx)
	if err != nil {
		return dnspods.Default()
	}
	for _, arg := range installation.Agent(&d.Spec.Template.Spec).Args {
		text, isSet := strings.CutPrefix(arg, "--dns-pods=")
		if found, err := dnspods.Parse(text); isSet && err == nil {
			return found
		}
	}
	return dnspods.Default()
}

// endpointSlices returns the EndpointSlices of a namespace with a label.
func (s *scene) endpointSlices(ctx context.Context, namespace, selector string) ([]discoveryv1.EndpointSlice, error) {
	found, err := s.me.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return found.Items, nil
}

// isReady reports whether an endpoint is ready, which is so where nothing else is said.
func isReady(e discoveryv1.Endpoint) bool { return *cmp.Or(e.Conditions.Ready, new(true)) }

// podsOf returns the ready pods with their Nodes, and their Services, each once.
func podsOf(all []discoveryv1.EndpointSlice) (pods, services []string) {
	for _, slice := range all {
		services = append(services, slice.Labels[discoveryv1.LabelServiceName])
		for _, e := range slice.Endpoints {
			if isReady(e) {
				pods = append(pods, fmt.Sprintf("%s (%s)", cmp.Or(e.TargetRef, &corev1.ObjectReference{}).Name, *cmp.Or(e.NodeName, new(""))))
			}
		}
	}
	slices.Sort(pods)
	slices.Sort(services)
	return slices.Compact(pods), slices.Compact(services)
}

// checkDNSPods names the pods that class pods connects to. Without them nothing tells
// that the overlay of a host is broken.
func (s *scene) checkDNSPods(ctx context.Context) answer {
	where := s.dnsPods(ctx)
	for _, selector := range where.Selectors() {
		found, err := s.endpointSlices(ctx, where.Namespace, selector)
		if err != nil {
			return skip("which DNS pods the agents ask: the EndpointSlices in %s cannot be listed: %v", where.Namespace, err)
		}
		pods, services := podsOf(found)
		if len(pods) > 0 {
			return ok("the agents ask the DNS pods of Service %s in %s: %s", terminal.Listed(services), where.Namespace, terminal.Listed(pods))
		}
	}
	return warn("no ready DNS pods are found by %s: the agents do not notice when the network of pods fails on one Node", where)
}
