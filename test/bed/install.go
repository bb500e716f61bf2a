package bed

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/test/cluster"
)

// NodeNameExtra is what the API server adds to whoever has a pod's token: the
// Node of the pod.
const NodeNameExtra = "authentication.kubernetes.io/node-name"

// Client returns a client of the API server.
func Client(t testing.TB, config *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// PatchNode patches a Node as the agents' field manager.
func PatchNode(ctx context.Context, as kubernetes.Interface, name string, kind types.PatchType, patch string, subresources ...string) error {
	_, err := as.CoreV1().Nodes().Patch(ctx, name, kind, []byte(patch), metav1.PatchOptions{FieldManager: Account}, subresources...)
	return err
}

// Apply applies a rendered manifest to the cluster.
func Apply(ctx context.Context, t *testing.T, c *cluster.Cluster, text string) {
	t.Helper()
	if err := c.Apply(ctx, ManifestFile(t, text)); err != nil {
		t.Fatal(err)
	}
}

// WaitInForce waits until the API server obeys the policies of the release in
// that namespace. It hears of them by a watch of its own, so this asks until
// each refuses a dry run that it has to refuse.
func WaitInForce(ctx context.Context, t *testing.T, c *cluster.Cluster, namespace string, policies ...string) {
	t.Helper()
	agent, err := kubernetes.NewForConfig(AllowedAll(c, namespace, "nowhere"))
	if err != nil {
		t.Fatal(err)
	}
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	meta := metav1.ObjectMeta{Name: "in-force"}
	tries := map[string]func() error{
		"nodes": func() error {
			_, err := agent.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: meta}, dryRun)
			return err
		},
		"events": func() error {
			event := &corev1.Event{ObjectMeta: meta, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "elsewhere"}}
			_, err := agent.CoreV1().Events("default").Create(ctx, event, dryRun)
			return err
		},
		"leases": func() error {
			_, err := agent.CoordinationV1().Leases(namespace).Create(ctx, &coordinationv1.Lease{ObjectMeta: meta}, dryRun)
			return err
		},
	}
	for _, policy := range policies {
		try := tries[strings.Split(policy, "-")[1]]
		cluster.Eventually(t, "the effect of "+policy, func() error {
			if err := try(); !DeniedBy(err, policy) {
				return errors.Join(errors.New("it does not deny"), err)
			}
			return nil
		})
	}
}

// DeniedBy says whether the error is a denial by that policy.
func DeniedBy(err error, policy string) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"' with binding '"+policy+"' denied request")
}

// AllowedAll is the agent of a node whom RBAC allows everything, as it would be
// where somebody bound more to its account than the chart does. Without a node
// it is one without a pod.
func AllowedAll(c *cluster.Cluster, namespace, node string) *rest.Config {
	config := c.Admin()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: UserOf(namespace),
		Groups:   []string{"system:masters"},
	}
	if node != "" {
		config.Impersonate.Extra = map[string][]string{NodeNameExtra: {node}}
	}
	return config
}

// Token asks for a token of the agent's account, as the kubelet does.
func Token(t *testing.T, c *cluster.Cluster, namespace string, boundTo *authenticationv1.BoundObjectReference) string {
	t.Helper()
	return TokenOf(t, c, namespace, Account, boundTo)
}

// TokenOf is Token for any account.
func TokenOf(t *testing.T, c *cluster.Cluster, namespace, account string, boundTo *authenticationv1.BoundObjectReference) string {
	t.Helper()
	token, err := c.Token(t.Context(), namespace, account, boundTo, 0)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// TokenOfPod is Token bound to a pod.
func TokenOfPod(t *testing.T, c *cluster.Cluster, pod *corev1.Pod) string {
	t.Helper()
	return Token(t, c, pod.Namespace, &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID})
}

// AgentOf is the agent of a node as it is: with the token of the DaemonSet's
// pod, which the real controller has made for the node.
func AgentOf(t *testing.T, c *cluster.Cluster, node string) *rest.Config {
	t.Helper()
	return c.WithToken(TokenOfPod(t, c, PodOn(t, c, node)))
}

// PodOn waits for the DaemonSet's pod on the node.
func PodOn(t *testing.T, c *cluster.Cluster, node string) *corev1.Pod {
	t.Helper()
	var pods *corev1.PodList
	cluster.Eventually(t, "the DaemonSet's pod on "+node, func() (err error) {
		pods, err = c.Client().CoreV1().Pods(Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		if err == nil && len(pods.Items) == 0 {
			err = errors.New("there is none")
		}
		return err
	})
	return &pods.Items[0]
}

// IsRefusal tells what an agent should not have asked for from what may befall
// any request: a conflict, and a timeout, as the API server calls it (504) when
// the agent ends while a request is out.
func IsRefusal(code int, resource string) bool {
	switch {
	case code == http.StatusConflict, code == http.StatusTooManyRequests, code >= 500:
		return false
	case code == http.StatusNotFound && (strings.HasPrefix(resource, "mutatingadmissionpolic") || resource == "endpointslices"):
		return false // that is the answer that was asked for; a lone API server on loopback has no slice
	}
	return code >= 400
}
