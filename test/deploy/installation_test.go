package deploy

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/test/cluster"
)

// patience is how long an event is waited for: far above what a busy machine
// needs.
const patience = 2 * time.Minute

// installation is a control plane with the chart in it.
type installation struct {
	cluster cluster.Shared
	once    sync.Once
}

// require returns the control plane, with the policies in force.
func (i *installation) require(t *testing.T) *cluster.Cluster {
	t.Helper()
	manifest := render(t, "--set", "namespace.create=true,keep=false,evict.slots=2,cleanup.afterUninstall=false")
	i.cluster.Options.AuditLog = true
	c := i.cluster.Require(t)
	i.once.Do(func() {
		ctx := context.WithoutCancel(t.Context())
		apply(ctx, t, c, manifest)
		waitInForce(ctx, t, c, "taintlet-nodes", "taintlet-events", "taintlet-leases")
	})
	return c
}

// waitInForce waits until the API server obeys the policies, of which it hears
// by a watch of its own: until each refuses a dry run that it has to refuse.
func waitInForce(ctx context.Context, t *testing.T, c *cluster.Cluster, policies ...string) {
	t.Helper()
	agent := client(t, allowedAll(c, "nowhere"))
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	meta := metav1.ObjectMeta{Name: "in-force"}
	tries := map[string]func() error{
		"taintlet-nodes": func() error {
			_, err := agent.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: meta}, dryRun)
			return err
		},
		"taintlet-events": func() error {
			event := &corev1.Event{ObjectMeta: meta, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "elsewhere"}}
			_, err := agent.CoreV1().Events("default").Create(ctx, event, dryRun)
			return err
		},
		"taintlet-leases": func() error {
			_, err := agent.CoordinationV1().Leases(namespace).Create(ctx, &coordinationv1.Lease{ObjectMeta: meta}, dryRun)
			return err
		},
	}
	for _, policy := range policies {
		eventually(t, policy+" in force", func() bool { return deniedBy(tries[policy](), policy) })
	}
}

// eventually asks again and again, for what no watch tells.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}

// deniedBy says whether the error is a denial by that policy.
func deniedBy(err error, policy string) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"' with binding '"+policy+"' denied request")
}

func client(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const nodeNameExtra = "authentication.kubernetes.io/node-name"

// allowedAll is the agent of a node whom RBAC allows everything, as it would be
// where somebody bound more to its account than the chart does.
func allowedAll(c *cluster.Cluster, node string) *rest.Config {
	config := c.Admin()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: user,
		Groups:   []string{"system:masters"},
		Extra:    map[string][]string{nodeNameExtra: {node}},
	}
	if node == "" {
		config.Impersonate.Extra = nil
	}
	return config
}

// agentOf is the agent of a node as it is: with the token of the DaemonSet's
// pod, which the real controller has made for the node.
func agentOf(t *testing.T, c *cluster.Cluster, node string) *rest.Config {
	t.Helper()
	pod := podOn(t, c, node)
	return c.WithToken(token(t, c, &authenticationv1.BoundObjectReference{
		APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
	}))
}

// token asks for a token of the agent's account, as the kubelet does.
func token(t *testing.T, c *cluster.Cluster, boundTo *authenticationv1.BoundObjectReference) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: boundTo}}
	answer, err := c.Client().CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Token
}

// podOn waits for the DaemonSet's pod on the node.
func podOn(t *testing.T, c *cluster.Cluster, node string) *corev1.Pod {
	t.Helper()
	var pods *corev1.PodList
	eventually(t, "the DaemonSet's pod on "+node, func() (found bool) {
		var err error
		pods, err = c.Client().CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		return err == nil && len(pods.Items) > 0
	})
	return &pods.Items[0]
}

// register makes a Node with a kubelet's stand-in, which ends with the cluster.
func register(t *testing.T, c *cluster.Cluster, name string) *cluster.Node {
	t.Helper()
	node, err := c.RegisterNode(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return node
}
