package security

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// applier manages a label of the Node by server-side apply.
const applier = "applier"

// setScene makes the objects that the attempts are made on and those who try.
func setScene(t *testing.T, c *cluster.Cluster) *attempted {
	t.Helper()
	s := &attempted{own: "denied", other: "denied-other"}
	c.Register(t, s.own)
	c.Register(t, s.other)
	s.agent = bed.Client(t, bed.AgentOf(t, c, s.own))
	s.withoutRBAC = bed.Client(t, bed.AllowedAll(c, bed.Namespace, s.own))
	s.withoutPod = bed.Client(t, bed.AllowedAll(c, bed.Namespace, ""))
	cleaner := bed.AllowedAll(c, bed.Namespace, s.other) // its pod may run anywhere
	cleaner.Impersonate.UserName += "-cleanup-stale"
	s.cleaner = bed.Client(t, cleaner)
	s.unbound = bed.Client(t, c.WithToken(bed.Token(t, c, bed.Namespace, nil)))
	s.pending = bed.Client(t, c.WithToken(bed.Token(t, c, bed.Namespace, pendingPod(t, c))))

	admin, ctx := c.Client(), t.Context()
	if err := bed.PatchNode(ctx, admin, s.own, types.StrategicMergePatchType, scenery); err != nil {
		t.Fatal(err)
	}
	applied := []byte(`{"apiVersion": "v1", "kind": "Node", "metadata": {"labels": {"applied": "a"}}}`)
	if _, err := admin.CoreV1().Nodes().Patch(ctx, s.own, types.ApplyPatchType, applied, metav1.PatchOptions{FieldManager: applier}); err != nil {
		t.Fatal(err)
	}
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "of-kubelet"},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: s.own},
		Source:         corev1.EventSource{Component: "kubelet"},
	}
	if _, err := admin.CoreV1().Events("default").Create(ctx, event, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	leases := admin.CoordinationV1().Leases(bed.Namespace)
	if _, err := leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "another"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	patch := []byte(`{"spec": {"holderIdentity": "` + s.other + `"}}`)
	if _, err := leases.Patch(ctx, "taintlet-evict-1", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// pendingPod makes a pod with the agent's account that no Node takes.
func pendingPod(t *testing.T, c *cluster.Cluster) *authenticationv1.BoundObjectReference {
	t.Helper()
	pod, err := c.Client().CoreV1().Pods(bed.Namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pending"},
		Spec: corev1.PodSpec{
			ServiceAccountName: bed.Account,
			NodeSelector:       map[string]string{"no-node": "has-this"},
			Containers:         []corev1.Container{{Name: "main", Image: "none"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
}
