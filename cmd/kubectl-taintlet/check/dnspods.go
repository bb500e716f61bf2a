package check

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/taintlet/taintlet/agent/fleet/dnspods"
)

// dnsPods is where the agents look for the pods of the cluster's DNS. A DaemonSet that
// cannot be read is taken for the chart's.
func (s *scene) dnsPods(ctx context.Context) dnspods.Where {
	d, err := s.agents(ctx)
	if err != nil {
		return dnspods.Default()
	}
	for _, container := range d.Spec.Template.Spec.Containers {
		for _, arg := range container.Args {
			text, isSet := strings.CutPrefix(arg, "--dns-pods=")
			if found, err := dnspods.Parse(text); isSet && container.Name == account && err == nil {
				return found
			}
		}
	}
	return dnspods.Default()
}

// dnsSlices is what is used of the EndpointSlices of the cluster's DNS.
type dnsSlices struct {
	Items []struct {
		Metadata  struct{ Labels map[string]string }
		Endpoints []struct {
			NodeName   string
			Conditions struct{ Ready *bool }
			TargetRef  struct{ Name string }
		}
	}
}

// pods returns the ready pods with their Nodes, and their Services, each once.
func (all dnsSlices) pods() (pods, services []string) {
	for _, slice := range all.Items {
		services = append(services, slice.Metadata.Labels["kubernetes.io/service-name"])
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				pods = append(pods, fmt.Sprintf("%s (%s)", e.TargetRef.Name, e.NodeName))
			}
		}
	}
	slices.Sort(pods)
	slices.Sort(services)
	return slices.Compact(pods), slices.Compact(services)
}

// dnsPodsCheck names the pods that class pods connects to. Without them nothing tells
// that the overlay of a host is broken.
func dnsPodsCheck() check {
	return check{
		name: "dns-pods", link: "docs/network.md#peers",
		remedy: "say where the pods of the cluster's DNS are: dnsPods in the chart's values, --dns-pods in deploy/taintlet.yaml; or switch class pods off",
		ask: func(ctx context.Context, s *scene) answer {
			where := s.dnsPods(ctx)
			for _, selector := range where.Selectors() {
				var found dnsSlices
				path := "/apis/discovery.k8s.io/v1/namespaces/" + where.Namespace + "/endpointslices"
				if err := s.me.listed(ctx, path, url.Values{"labelSelector": {selector}}, &found); err != nil {
					return skip("which DNS pods the agents ask: the EndpointSlices in %s cannot be listed: %v", where.Namespace, err)
				}
				pods, services := found.pods()
				if len(pods) > 0 {
					return ok("the agents ask the DNS pods of Service %s in %s: %s", listed(services), where.Namespace, listed(pods))
				}
			}
			return warn("no ready DNS pods are found by %s: the agents do not notice when the network of pods fails on one Node", where)
		},
	}
}
