package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/status"
	"github.com/taintlet/taintlet/cmd/terminal"
)

func (s *scene) checkDaemonSet(ctx context.Context) answer {
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
		return fail("the DaemonSet %s selects no Node", account).but("correct nodeSelector, affinity and tolerations in the chart's values")
	case n.NumberReady < n.DesiredNumberScheduled:
		return fail("%d of %d agents are ready%s", n.NumberReady, n.DesiredNumberScheduled, s.whoIsNotReady(ctx))
	case n.UpdatedNumberScheduled < n.DesiredNumberScheduled:
		return warn("%d of %d agents are of the DaemonSet's newest version", n.UpdatedNumberScheduled, n.DesiredNumberScheduled)
	}
	return ok("all %d agents are ready", n.DesiredNumberScheduled)
}

// noDaemonSet says that there is none, and where there is one instead.
func (s *scene) noDaemonSet(ctx context.Context) answer {
	missing := fail("the DaemonSet %s is missing in namespace %s", account, s.namespace)
	if elsewhere, err := s.me.AppsV1().DaemonSets("").List(ctx, installation.Labelled()); err == nil {
		for _, d := range elsewhere.Items {
			if d.Name == account {
				return missing.but("did you mean --namespace=" + d.Namespace + "?")
			}
		}
	}
	return missing.but("install it: apply the manifest or upgrade the chart. Nodes keep the taints that they have until agents run again")
}

// whoIsNotReady names the agents that are not ready, as far as their pods tell.
func (s *scene) whoIsNotReady(ctx context.Context) string {
	all, err := s.agentPods(ctx)
	if nodes := notReady(all, s.asker(ctx)); err == nil && len(nodes) > 0 {
		return "; not ready: " + terminal.Listed(nodes)
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
func (s *scene) asker(ctx context.Context) func(*corev1.Pod) string {
	count := 0
	return func(p *corev1.Pod) string {
		if count++; count > askedAgents || p.Status.Phase != corev1.PodRunning {
			return ""
		}
		ctx, cancel := context.WithTimeout(ctx, askedFor)
		defer cancel()
		path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%d/proxy/readyz", p.Namespace, p.Name, portOf(p))
		var answered apierrors.APIStatus
		if err := s.me.CoreV1().RESTClient().Get().AbsPath(path).MaxRetries(0).Do(ctx).Error(); !errors.As(err, &answered) || answered.Status().Details == nil {
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

func (s *scene) checkSigns(ctx context.Context) answer {
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
		return fail("%d of %d agents have given no sign for %s or longer: %s", len(silent), summary.Agents, all.silentAfter, terminal.Listed(silent))
	}
	return ok("all agents write their Nodes: %s", summary)
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
