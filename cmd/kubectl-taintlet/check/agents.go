package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/cmd/terminal"
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
			switch {
			case apierrors.IsNotFound(err):
				return s.noDaemonSet(ctx)
			case err != nil:
				return unread("the DaemonSet of the agents", err)
			}
			n := d.Status
			switch {
			case n.DesiredNumberScheduled == 0:
				return fail("the DaemonSet %s selects no Node", account).but("mend nodeSelector, affinity and tolerations in the chart's values")
			case n.NumberReady < n.DesiredNumberScheduled:
				return fail("%d of %d agents are ready%s", n.NumberReady, n.DesiredNumberScheduled, s.whoIsNotReady(ctx))
			case n.UpdatedNumberScheduled < n.DesiredNumberScheduled:
				return warn("%d of %d agents are of the DaemonSet's newest version", n.UpdatedNumberScheduled, n.DesiredNumberScheduled)
			}
			return ok("all %d agents are ready", n.DesiredNumberScheduled)
		},
	}
}

// noDaemonSet says that there is none, and where there is one instead.
func (s *scene) noDaemonSet(ctx context.Context) answer {
	missing := fail("the DaemonSet %s is missing in namespace %s", account, s.namespace)
	var elsewhere struct{ Items []pod }
	if err := s.me.selected(ctx, "/apis/apps/v1/daemonsets", label, &elsewhere); err == nil {
		for _, d := range elsewhere.Items {
			if d.Metadata.Name == account {
				return missing.but("did you mean --namespace=" + d.Metadata.Namespace + "?")
			}
		}
	}
	return missing.but("install it: apply the manifest or upgrade the chart. Nodes keep the taints that they have until agents run again")
}

// whoIsNotReady names the agents that are not ready, as far as their pods tell.
func (s *scene) whoIsNotReady(ctx context.Context) string {
	all, err := s.agentPods(ctx)
	if nodes := notReady(all, s.asker(ctx)); err == nil && len(nodes) > 0 {
		return "; not ready: " + listed(nodes)
	}
	return ""
}

const (
	// askedAgents is how many agents are asked why they are not ready, and askedFor how
	// long each may take.
	askedAgents = 3
	askedFor    = 2 * time.Second
)

// asker returns what asks an agent through the API server why it is not ready. The
// answer is empty where the agent cannot be asked, or too many were.
func (s *scene) asker(ctx context.Context) func(pod) string {
	count := 0
	return func(p pod) string {
		if count++; count > askedAgents || p.Status.Phase != "Running" {
			return ""
		}
		ctx, cancel := context.WithTimeout(ctx, askedFor)
		defer cancel()
		path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%d/proxy/readyz", p.Metadata.Namespace, p.Metadata.Name, p.port())
		var answered apierrors.APIStatus
		if err := s.me.client.Get().AbsPath(path).MaxRetries(0).Do(ctx).Error(); !errors.As(err, &answered) || answered.Status().Details == nil {
			return ""
		}
		for _, cause := range answered.Status().Details.Causes {
			if cause.Type == metav1.CauseTypeUnexpectedServerResponse { // the agent's own text
				return terminal.Clean(strings.TrimSpace(cause.Message), maxReason)
			}
		}
		return "" // of the API server, which did not reach it
	}
}

// maxReason is how much an agent may say, in bytes.
const maxReason = 200

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
				return fail("%d of %d agents have given no sign for %s or longer: %s", len(silent), summary.Agents, all.silentAfter, listed(silent))
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
				return unread("the Service of the agents", err)
			case !found:
				return fail("the Service %s is missing in namespace %s", account, s.namespace)
			case service.Spec.ClusterIP != "None":
				return warn("the Service %s has the address %s: it is to be headless", account, service.Spec.ClusterIP)
			}
			ready, err := s.endpoints(ctx)
			if err != nil {
				return unread("the EndpointSlices of the agents", err)
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
