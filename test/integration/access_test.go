package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// The agents of these tests have the permissions that the chart gives, under
// the policies that it installs, and the token of a pod on their Node. When all
// tests are done, the audit log tells whether any request of theirs was refused.

// grantAgents lets agents of the namespace taintlet-system do what they need.
func grantAgents(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	t.Helper()
	createNamespace(t, c, bed.Namespace)
	bed.InstallRules(ctx, t, c, bed.ChartFolder, bed.Namespace, map[string]any{"config": allRules()})
}

// newCluster starts a control plane for one test.
func newCluster(t *testing.T, options cluster.Options) *cluster.Cluster {
	t.Helper()
	options.AuditLog = true
	c := cluster.New(t, options)
	t.Cleanup(func() {
		if err := noneRefused(c); err != nil {
			t.Error(err)
		}
	})
	return c
}

func createNamespace(t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: name}
	if _, err := c.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// allRules are the built-in rules and those of all tests: the agents of a
// control plane configure what they like, under the same policies.
func allRules() map[string]any {
	rules := config.Default().Rules
	for _, taint := range []decide.Taint{
		{Key: corev1.TaintNodeMemoryPressure, Effect: taints.PreferNoSchedule},
		{Key: "example.com/pids", Effect: taints.NoSchedule},
		{Key: "example.com/trouble", Effect: taints.NoSchedule},
		{Key: "example.com/tired", Effect: taints.NoSchedule},
		{Key: "example.com/tired", Effect: taints.PreferNoSchedule},
	} {
		rules = append(rules, decide.Rule{Condition: probes.MemoryPressure, Level: probes.Degraded, Taint: taint})
	}
	return map[string]any{"rules": rules, "memory": map[string]any{"earlyPercent": 10}, "overrides": pools(), "keyPrefix": "status-taint.cluster-autoscaler.kubernetes.io"}
}

// identity is who the agent of the node is to the API server: the bearer of the
// token of a pod there.
func identity(t *testing.T, c *cluster.Cluster, node string) *rest.Config {
	t.Helper()
	return identityIn(t, c, bed.Namespace, node)
}

func identityIn(t *testing.T, c *cluster.Cluster, namespace, node string) *rest.Config {
	t.Helper()
	var now int64
	pod, err := c.Client().CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "taintlet-"},
		Spec: corev1.PodSpec{
			NodeName:                      node,
			ServiceAccountName:            bed.Account,
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:                    []corev1.Container{{Name: "taintlet", Image: "none"}},
			TerminationGracePeriodSeconds: &now, // no kubelet confirms its end
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c.WithToken(bed.TokenOfPod(t, c, pod))
}

// ofAgents is how the users of agents end, whatever their namespace.
const ofAgents = ":" + bed.Account

// noneRefused is an error when RBAC or a policy refused a request of an agent.
// That requests are found at all is for TestSteadyStateMakesNoRequests to say.
func noneRefused(c *cluster.Cluster) error {
	requests, err := c.Requests(ofAgents)
	if err != nil {
		return err
	}
	var refused []error
	for _, r := range requests {
		if r.Resource() == "pods" {
			continue // of a cleanup with an agent's account, which looks for agents in vain
		}
		if r.ResponseStatus.Code == http.StatusForbidden || r.ResponseStatus.Code == http.StatusUnprocessableEntity {
			refused = append(refused, fmt.Errorf("refused: %s %s %s of the agent of %s: %s", r.Verb, r.Resource(), r.ObjectRef.Name, r.User.Extra[bed.NodeNameExtra], r.ResponseStatus.Message))
		}
	}
	return errors.Join(refused...)
}

// eventsAreDocumented is an error when an agent wrote an Event with a reason
// that docs/events.md lacks. That the page has no others is for the tests of
// package agent to say.
func eventsAreDocumented(c *cluster.Cluster) error {
	page, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		return err
	}
	events, err := c.Client().CoreV1().Events("default").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	level := regexp.MustCompile(`^Host\w+?(Degraded|Critical|OK)$`)
	missing := map[string]error{}
	for _, event := range events.Items {
		if event.Source.Component != "taintlet" {
			continue
		}
		reason := level.ReplaceAllString(event.Reason, "Host<Condition>$1")
		if !strings.Contains(string(page), "| `"+reason+"`") {
			missing[reason] = fmt.Errorf("docs/events.md lacks the reason %s: %s", event.Reason, event.Message)
		}
	}
	return errors.Join(slices.Collect(maps.Values(missing))...)
}
