package security

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// The largest Nodes that kubelets and their neighbours make, and then some.
const (
	manyTaints      = 200
	manyConditions  = 60
	manyImages      = 50 // the kubelet's nodeStatusMaxImages
	manyLabels      = 100
	manyAnnotations = 300
)

// bigObject and bigStatus together fill a Node.
func bigObject() map[string]any {
	list := make([]corev1.Taint, manyTaints)
	for i := range list {
		list[i] = corev1.Taint{Key: fmt.Sprintf("%s.example.com/taint-%d", strings.Repeat("a", 60), i), Value: strings.Repeat("v", 63), Effect: corev1.TaintEffectPreferNoSchedule}
	}
	labels, annotations := map[string]string{}, map[string]string{}
	for i := range manyLabels {
		labels[fmt.Sprintf("example.com/label-%d", i)] = strings.Repeat("v", 63)
	}
	for i := range manyAnnotations {
		annotations[fmt.Sprintf("example.com/annotation-%d", i)] = strings.Repeat("v", 600) // 256 KiB is the most
	}
	return map[string]any{
		"metadata": map[string]any{"labels": labels, "annotations": annotations},
		"spec":     map[string]any{"taints": list},
	}
}

func bigStatus() map[string]any {
	conditions := make([]corev1.NodeCondition, manyConditions)
	for i := range conditions {
		conditions[i] = corev1.NodeCondition{
			Type: corev1.NodeConditionType(fmt.Sprintf("Condition%d", i)), Status: corev1.ConditionFalse, Reason: "AsItIs",
			Message: strings.Repeat("m", 1000), LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}
	}
	images := make([]corev1.ContainerImage, manyImages)
	for i := range images {
		name := fmt.Sprintf("images.example.com/%s/image-%d", strings.Repeat("a", 150), i)
		images[i] = corev1.ContainerImage{Names: []string{name + "@sha256:" + strings.Repeat("0", 64), name + ":v1"}, SizeBytes: 1 << 30}
	}
	return map[string]any{"status": map[string]any{"conditions": conditions, "images": images}}
}

func makeBig(t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	for subresource, object := range map[string]any{"": bigObject(), "status": bigStatus()} {
		if err := bed.PatchNode(t.Context(), c.Client(), name, types.StrategicMergePatchType, marshal(t, object), subresource); err != nil {
			t.Fatal(err)
		}
	}
}

// ours is what the agent writes at most: all conditions, taints and stand-ins.
func ours() taints.Desired {
	desired := taints.Desired{Annotations: map[string]string{
		taints.RecordAnnotation: strings.Repeat("r", 4096), taints.HeldAnnotation: "node.kubernetes.io/memory-pressure",
	}}
	for _, name := range []string{"memory-pressure", "disk-pressure", "pid-pressure", "network-unavailable"} {
		for _, prefix := range []string{"node.kubernetes.io/", "taintlet.dev/"} {
			taint := taints.Taint{Key: prefix + name, Effect: taints.NoSchedule}
			desired.Taints, desired.Owned = append(desired.Taints, taint), append(desired.Owned, taint.Pair())
		}
	}
	for _, kind := range []string{"HostMemoryPressure", "HostDiskPressure", "HostPIDPressure", "HostNetworkUnavailable"} {
		desired.Conditions = append(desired.Conditions, taints.NodeCondition{Type: kind, Status: taints.ConditionTrue, Reason: "Try", Message: strings.Repeat("m", 1000)})
	}
	return desired
}

// The cost of an expression is bounded. On a Node larger than any, the agent's
// writes are allowed, and a denial still says what it is about.
func TestBigNode(t *testing.T) {
	c := denying.Require(t)
	const name = "big"
	c.Register(t, name)
	makeBig(t, c, name)
	identity, agent := bed.AgentOf(t, c, name), agentOf(t, c, name)
	begin := time.Now()
	node, err := agent.Apply(t.Context(), apiserver.NodeOf(c.GetNode(t, name)), ours())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("two patches in %s", time.Since(begin))
	t.Logf("a Node of %d bytes", c.GetNode(t, name).Size())

	// What a message may hold is bounded too.
	for patch, says := range map[string]string{
		`[{"op": "remove", "path": "/spec/taints/199"}]`:           "/taint-199:PreferNoSchedule",
		`[{"op": "replace", "path": "/spec/taints", "value": []}]`: "taints of others stay",
	} {
		err = bed.PatchNode(t.Context(), bed.Client(t, identity), name, types.JSONPatchType, patch)
		if !bed.DeniedBy(err, "taintlet-nodes") || !strings.Contains(err.Error(), says) {
			t.Errorf("not denied, or without saying %s: %v", says, err)
		}
	}
	clear := ours()
	clear.Taints, clear.Conditions = nil, nil
	clear.Gone = []string{"HostMemoryPressure"}
	if _, err := agent.Apply(t.Context(), node, clear); err != nil {
		t.Error(err)
	}
}

// An agent takes a slot, renews it, gives it up, and takes over one that another
// let lapse, with the permissions that evict.slots gives it.
func TestSlotsAreTaken(t *testing.T) {
	c := denying.Require(t)
	holder, another, now := "evicting", "evicting-before", metav1.NowMicro()
	c.Register(t, holder)
	const slot = "taintlet-evict-0"
	change := func(as kubernetes.Interface, what string, change func(*coordinationv1.LeaseSpec)) {
		t.Helper()
		lease, err := as.CoordinationV1().Leases(bed.Namespace).Get(t.Context(), slot, metav1.GetOptions{})
		if err == nil {
			change(&lease.Spec)
			_, err = as.CoordinationV1().Leases(bed.Namespace).Update(t.Context(), lease, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	agent, transitions := bed.Client(t, bed.AgentOf(t, c, holder)), int32(1)
	take := func(l *coordinationv1.LeaseSpec) {
		l.HolderIdentity, l.AcquireTime, l.RenewTime, l.LeaseTransitions = &holder, &now, &now, &transitions
	}
	release := func(l *coordinationv1.LeaseSpec) { l.HolderIdentity = nil }
	change(agent, "take", take)
	change(agent, "renew", func(l *coordinationv1.LeaseSpec) { l.RenewTime = &metav1.MicroTime{Time: now.Add(time.Minute)} })
	change(agent, "release", release)
	change(c.Client(), "another takes it", func(l *coordinationv1.LeaseSpec) { l.HolderIdentity = &another })
	change(agent, "take over", take)
	change(agent, "release again", release)
}

// The controller manager's type check finds nothing to warn of in any
// expression.
func TestPoliciesAreWellTyped(t *testing.T) {
	c := denying.Require(t)
	for _, name := range []string{"taintlet-nodes", "taintlet-events", "taintlet-leases"} {
		policies := c.Client().AdmissionregistrationV1().ValidatingAdmissionPolicies()
		cluster.Eventually(t, "type check of "+name, func() error {
			policy, err := policies.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if policy.Status.ObservedGeneration != policy.Generation || policy.Status.TypeChecking == nil {
				return fmt.Errorf("of generation %d the status is %+v", policy.Generation, policy.Status)
			}
			for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
				t.Errorf("%s: %s: %s", name, warning.FieldRef, warning.Warning)
			}
			return nil
		})
	}
}
