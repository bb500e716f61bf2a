package culprit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/taintlet/taintlet/test/cluster"
	"github.com/taintlet/taintlet/test/process"
)

// kubectl taintlet status gives a pod its name with the rights of the person who asks, in
// one request for a Node, and says when that person may not list pods.
func TestStatusNamesPods(t *testing.T) {
	if !cluster.Required("controlplane") {
		t.Skip("needs a control plane: set TAINTLET_REQUIRE=controlplane")
	}
	c := cluster.New(t, cluster.Options{AuditLog: true})
	c.Register(t, "node-1")
	plugin, err := process.BuildPlugin(t.Context(), t.TempDir(), process.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	uid := podOn(t, c, "cart-0", nil)
	static := strings.Repeat("1ba7ab0f", 4)
	podOn(t, c, "etcd-node-1", map[string]string{"kubernetes.io/config.hash": static})
	now := time.Now().UTC().Format(time.RFC3339)
	message := fmt.Sprintf("available 1 GiB; pod %s (java) took 3 GiB in 4 s since 08:12 UTC, and has 3 GiB; the largest is pod %s (etcd) with 4 GiB", uid, static)
	patch := fmt.Sprintf(`{"status": {"conditions": [{"type": "HostMemoryPressure", "status": "True", "reason": "MemoryLow", "message": %q, "lastHeartbeatTime": %q, "lastTransitionTime": %[2]q}]}}`, message, now)
	if _, err := c.Client().CoreV1().Nodes().Patch(t.Context(), "node-1", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	nodes := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list"}}
	pods := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}
	for user, rules := range map[string][]rbacv1.PolicyRule{"may": {nodes, pods}, "may-not": {nodes}} {
		if err := c.Grant(t.Context(), user, user, rules...); err != nil {
			t.Fatal(err)
		}
	}
	for user, want := range map[string][]string{
		"may":     {"pod default/cart-0 (java) took 3 GiB", "the largest is pod default/etcd-node-1 (etcd)"},
		"may-not": {"pod " + uid + " (java) took 3 GiB", "not read: names of pods (you are not allowed to)"},
	} {
		identity, err := c.Config(user)
		if err != nil {
			t.Fatal(err)
		}
		_, out, complaints := process.Call(t, plugin, "status", "node-1", "--namespace=", "--kubeconfig="+cluster.Kubeconfig(t, identity))
		for _, text := range want {
			if !strings.Contains(out, text) {
				t.Errorf("%s: no %q in\n%s%s", user, text, out, complaints)
			}
		}
		requests, err := c.Requests(user)
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		for _, r := range requests {
			if strings.Contains(r.RequestURI, "/pods") {
				asked++
				if !strings.Contains(r.RequestURI, "fieldSelector=spec.nodeName%3Dnode-1") {
					t.Errorf("%s asked %s", user, r.RequestURI)
				}
			}
		}
		if asked != 1 {
			t.Errorf("%s asked %d times for pods", user, asked)
		}
	}
}

// podOn makes a pod of the Node, and returns its UID.
func podOn(t *testing.T, c *cluster.Cluster, name string, annotations map[string]string) string {
	t.Helper()
	p := cluster.NewPod(name, "node-1")
	p.Annotations, p.Spec.NodeName = annotations, "node-1"
	p.Spec.Containers[0].ImagePullPolicy = corev1.PullNever
	c.CreatePod(t, p)
	made, err := c.Client().CoreV1().Pods(metav1.NamespaceDefault).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(made.UID)
}
