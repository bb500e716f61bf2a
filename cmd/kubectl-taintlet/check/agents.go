package check

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/fleet/dnspods"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/terminal"
)

func (s *scene) checkDaemonSet(context.Context) Line {
	d, err := s.agents()
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

func (s *scene) checkSigns(context.Context) Line {
	if s.report.Summary.Agents == 0 {
		return fail("no agent has written its Node yet")
	}
	return ok("all agents write their Nodes: %s", s.report.Summary)
}

func (s *scene) checkService(ctx context.Context) Line {
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
	d, err := s.agents()
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

// checkOneEach finds Nodes with two agents, of whatever namespace. One of them writes, and the
// other waits.
func (s *scene) checkOneEach(ctx context.Context) Line {
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
	return ok("no Node has more than one agent")
}

// dnsPods is where the agents look for the pods of the cluster's DNS. A DaemonSet that
// cannot be read is taken for the chart's.
func (s *scene) dnsPods() dnspods.Where {
	d, err := s.agents()
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
func (s *scene) checkDNSPods(ctx context.Context) Line {
	where := s.dnsPods()
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

func (s *scene) checkHostNetwork(context.Context) Line {
	return s.hasNamespace("hostNetwork", "routes", func(spec *corev1.PodSpec) bool { return spec.HostNetwork })
}

func (s *scene) checkHostPID(context.Context) Line {
	if others := s.said["host-pid"]; len(others) > 0 {
		return warn("agents say that they are not in the host's PID namespace: %s", terminal.Listed(others)).
			but("set hostPID: true in the DaemonSet's template, as the chart does. Where it is set, the Node is itself a container, and its own limit of PIDs is not seen")
	}
	return s.hasNamespace("hostPID", "limits of PIDs and mounts", func(spec *corev1.PodSpec) bool { return spec.HostPID })
}

func (s *scene) hasNamespace(field, what string, has func(*corev1.PodSpec) bool) Line {
	d, err := s.agents()
	switch {
	case err != nil:
		return skip("whether the agents have %s: the DaemonSet cannot be read", field)
	case !has(&d.Spec.Template.Spec):
		return fail("the agents lack %s: they do not see the %s of the host", field, what)
	}
	return ok("the agents have %s: they see the %s of the host", field, what)
}

// ofNodes is the question whether all Nodes are fine, of which those are not of whom something
// was said under the name of the check.
func ofNodes(name, whether, trouble, fine string) func(*scene, context.Context) Line {
	return func(s *scene, _ context.Context) Line {
		switch {
		case s.readErr != nil:
			return skip("%s: %v", whether, s.readErr)
		case name != kernel && s.report.Summary.Agents == 0:
			return skip("%s: there are no agents", whether)
		case len(s.said[name]) > 0:
			return warn("%s: %s", trouble, terminal.Listed(s.said[name]))
		}
		return ok("%s", fine)
	}
}
