package check

import (
	"context"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
)

// daemonSet is what is used of the agents' DaemonSet.
type daemonSet struct {
	Spec struct {
		Template struct {
			Spec struct {
				HostNetwork, HostPID bool
				ServiceAccountName   string
				Containers           []struct {
					Name string
					Args []string
				}
			}
		}
	}
	Status struct {
		DesiredNumberScheduled, NumberReady, UpdatedNumberScheduled int
	}
}

// agents returns the DaemonSet.
func (s *scene) agents(ctx context.Context) (*daemonSet, error) {
	return s.daemonSet.once(func() (*daemonSet, error) {
		read := &daemonSet{}
		return read, s.me.get(ctx, "/apis/apps/v1/namespaces/"+s.namespace+"/daemonsets/"+account, read)
	})
}

func daemonSetCheck() check {
	return check{
		name: "daemonset", link: "docs/troubleshooting.md#the-agents-pod-is-not-ready",
		remedy: "see the pods that are not ready: kubectl get pods --all-namespaces -o wide --selector " + label,
		ask: func(ctx context.Context, s *scene) answer {
			d, err := s.agents(ctx)
			if err != nil {
				return fail("the DaemonSet %s in namespace %s cannot be read: %v", account, s.namespace, err)
			}
			n := d.Status
			switch {
			case n.DesiredNumberScheduled == 0:
				return fail("the DaemonSet %s selects no Node", account)
			case n.NumberReady < n.DesiredNumberScheduled:
				return fail("%d of %d agents are ready", n.NumberReady, n.DesiredNumberScheduled)
			case n.UpdatedNumberScheduled < n.DesiredNumberScheduled:
				return warn("%d of %d agents are of the DaemonSet's newest version", n.UpdatedNumberScheduled, n.DesiredNumberScheduled)
			}
			return ok("all %d agents are ready", n.DesiredNumberScheduled)
		},
	}
}

func signsCheck() check {
	return check{
		name: "signs", link: "docs/troubleshooting.md#the-agents-pod-is-not-ready",
		remedy: "read the log of the agent on that Node",
		ask: func(ctx context.Context, s *scene) answer {
			all, err := s.allNodes(ctx)
			if err != nil {
				return skip("whether the agents write their Nodes: %v", err)
			}
			var silent []string
			for _, node := range all.report.Nodes {
				if node.State == status.Silent {
					silent = append(silent, node.Name)
				}
			}
			summary := all.report.Summary
			switch {
			case summary.Agents == 0:
				return fail("no agent has written its Node yet")
			case len(silent) > 0:
				return fail("%d of %d agents have given no sign for %s or longer: %s", len(silent), summary.Agents, status.DefaultSilentAfter, listed(silent))
			}
			return ok("all agents write their Nodes: %s", summary)
		},
	}
}

func serviceCheck() check {
	return check{
		name: "service", link: "docs/network.md#peers",
		remedy: "apply the manifest or upgrade the chart again: without the Service the agents have no peers, and so no fleet brake",
		ask: func(ctx context.Context, s *scene) answer {
			var service struct{ Spec struct{ ClusterIP string } }
			found, err := s.me.find(ctx, "/api/v1/namespaces/"+s.namespace+"/services/"+account, &service)
			switch {
			case err != nil:
				return fail("the Service %s cannot be read: %v", account, err)
			case !found:
				return fail("the Service %s is missing in namespace %s", account, s.namespace)
			case service.Spec.ClusterIP != "None":
				return warn("the Service %s has the address %s: it is to be headless", account, service.Spec.ClusterIP)
			}
			ready, err := s.endpoints(ctx)
			if err != nil {
				return fail("the EndpointSlices of the agents cannot be listed: %v", err)
			}
			d, err := s.agents(ctx)
			if err == nil && ready < d.Status.NumberReady {
				return fail("the Service %s names %d agents, and %d are ready", account, ready, d.Status.NumberReady)
			}
			return ok("the Service names the agents to one another: %d", ready)
		},
	}
}

// endpoints counts the agents that the EndpointSlices name.
func (s *scene) endpoints(ctx context.Context) (int, error) {
	var slices struct {
		Items []struct {
			Endpoints []struct{ Conditions struct{ Ready *bool } }
		}
	}
	path := "/apis/discovery.k8s.io/v1/namespaces/" + s.namespace + "/endpointslices"
	if err := s.me.selected(ctx, path, "kubernetes.io/service-name="+account, &slices); err != nil {
		return 0, err
	}
	count := 0
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if ready := endpoint.Conditions.Ready; ready == nil || *ready {
				count++
			}
		}
	}
	return count, nil
}
