package security

import (
	"context"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/bed"
)

// tokenFor asks for a token of the agents' account that is bound to a pod.
func tokenFor(pod *corev1.Pod) *authenticationv1.TokenRequest {
	return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
}

// A rogue kubelet has what Kubernetes gives the kubelet of a Node. It can pause the agent of
// its own Node, forge that agent's record and get that agent's token. It reaches nothing of
// another Node through taintlet, and none of taintlet's objects.
func TestRogueKubelet(t *testing.T) {
	c := denying.Require(t)
	const own, other = "rogue", "beside-rogue"
	c.Register(t, own)
	c.Register(t, other)
	ownPod, otherPod := bed.PodOn(t, c, own), bed.PodOn(t, c, other)
	rogue, ctx := kubelet(t, c, own), t.Context()
	accounts := rogue.CoreV1().ServiceAccounts(bed.Namespace)

	// What it can do.
	for _, key := range []string{taints.PausedAnnotation, taints.RecordAnnotation, taints.HeldAnnotation} {
		if err := bed.PatchNode(ctx, rogue, own, types.MergePatchType, `{"metadata": {"annotations": {"`+key+`": "true"}}}`); err != nil {
			t.Errorf("its own Node's %s: %v", key, err)
		}
	}
	answer, err := accounts.CreateToken(ctx, bed.Account, tokenFor(ownPod), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("the token of its own Node's agent: %v", err)
	}
	agent := bed.Client(t, c.WithToken(answer.Status.Token))
	const ours = `{"metadata": {"annotations": {"taintlet.dev/held": null}}}`
	if err := bed.PatchNode(ctx, agent, own, types.MergePatchType, ours); err != nil {
		t.Errorf("its own Node with that token: %v", err)
	}
	if err := bed.PatchNode(ctx, agent, other, types.MergePatchType, ours); !bed.DeniedBy(err, "taintlet-nodes") {
		t.Errorf("another Node with that token: %v", err)
	}

	// What it cannot do.
	for what, try := range map[string]func(context.Context) error{
		"the token of another Node's agent": func(ctx context.Context) error {
			_, err := accounts.CreateToken(ctx, bed.Account, tokenFor(otherPod), metav1.CreateOptions{})
			return err
		},
		"a token for no pod": func(ctx context.Context) error {
			_, err := accounts.CreateToken(ctx, bed.Account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
			return err
		},
		"another Node's record": func(ctx context.Context) error {
			return bed.PatchNode(ctx, rogue, other, types.MergePatchType, `{"metadata": {"annotations": {"taintlet.dev/record": "{}"}}}`)
		},
		"a taint of its own Node": func(ctx context.Context) error {
			return bed.PatchNode(ctx, rogue, own, types.MergePatchType, `{"spec": {"taints": [{"key": "taintlet.dev/memory-pressure", "effect": "NoSchedule"}]}}`)
		},
		"the configuration": func(ctx context.Context) error {
			_, err := rogue.CoreV1().ConfigMaps(bed.Namespace).Patch(ctx, bed.Account, types.MergePatchType, []byte(`{"data": {"config.yaml": "x"}}`), metav1.PatchOptions{})
			return err
		},
		"an eviction slot": func(ctx context.Context) error {
			_, err := rogue.CoordinationV1().Leases(bed.Namespace).Update(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "taintlet-evict-0"}}, metav1.UpdateOptions{})
			return err
		},
		"a slice of peers": func(ctx context.Context) error {
			slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "forged"}, AddressType: discoveryv1.AddressTypeIPv4}
			_, err := rogue.DiscoveryV1().EndpointSlices(bed.Namespace).Create(ctx, slice, metav1.CreateOptions{})
			return err
		},
		"the policies": func(ctx context.Context) error {
			return rogue.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, "taintlet-nodes", metav1.DeleteOptions{})
		},
	} {
		if err := try(ctx); !apierrors.IsForbidden(err) {
			t.Errorf("%s: not forbidden: %v", what, err)
		}
	}
	if node := c.GetNode(t, other); strings.Contains(node.Annotations[taints.RecordAnnotation], "{}") {
		t.Error("another Node's record was forged")
	}
}
