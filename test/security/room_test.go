package security

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// most is what the agent may write at most.
func most() taints.Desired {
	desired := ours()
	desired.Annotations = map[string]string{taints.RecordAnnotation: letters(recordBytes), taints.HeldAnnotation: letters(heldBytes)}
	for i := range desired.Conditions {
		desired.Conditions[i].Reason, desired.Conditions[i].Message = letters(reasonBytes), letters(messageBytes)
	}
	return desired
}

// none removes what most writes.
func none(desired taints.Desired) taints.Desired {
	for _, condition := range desired.Conditions {
		desired.Gone = append(desired.Gone, condition.Type)
	}
	desired.Taints, desired.Conditions = nil, nil
	desired.Annotations = map[string]string{taints.RecordAnnotation: "", taints.HeldAnnotation: ""}
	return desired
}

// The bounds are where they are said to be: what is as large as they are is
// allowed.
func TestBoundsLeaveRoom(t *testing.T) {
	c := denying.Require(t)
	const name = "roomy"
	c.Register(t, name)
	identity := bed.AgentOf(t, c, name)
	applyTo(t, c, name, most())
	event := ownEvent(name)
	event.Reason, event.Message = letters(reasonBytes), letters(messageBytes)
	if _, err := bed.Client(t, identity).CoreV1().Events("default").Create(t.Context(), event, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	applyTo(t, c, name, none(most()))
}

// What the agent has to say may be longer than the policies let pass: 32 paths of
// up to 4096 bytes. Its write is allowed all the same.
func TestLongMessagePasses(t *testing.T) {
	c := denying.Require(t)
	const name = "talkative"
	c.Register(t, name)
	agent := agentOf(t, c, name)
	long := letters(32 * 4096)
	desired := taints.Desired{Conditions: []taints.NodeCondition{{Type: "HostDiskPressure", Status: taints.ConditionUnknown, Reason: "StatfsBlocked", Message: long}}}
	node, err := agent.Apply(t.Context(), apiserver.NodeOf(c.GetNode(t, name)), desired)
	if err != nil {
		t.Errorf("%.300s", err.Error())
	}
	if err := agent.Announce(t.Context(), node, "Try", long); err != nil {
		t.Errorf("%.300s", err.Error())
	}
}

// applyTo writes as the agent of the Node does.
func applyTo(t *testing.T, c *cluster.Cluster, name string, desired taints.Desired) {
	t.Helper()
	agent := agentOf(t, c, name)
	for {
		_, err := agent.Apply(t.Context(), apiserver.NodeOf(c.GetNode(t, name)), desired)
		if errors.Is(err, apiserver.ErrOvertaken) {
			continue // the controllers write this Node too: the agent decides again
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

// Who may write Nodes otherwise, such as the kubelet, is not bounded by these
// policies. What they leave in taintlet's own fields must not keep its agent from
// writing.
func TestOthersCannotLockTheAgentOut(t *testing.T) {
	c := denying.Require(t)
	const name = "littered"
	c.Register(t, name)
	applyTo(t, c, name, ours())
	litter(t, c, name)
	identity := bed.AgentOf(t, c, name)
	agent := bed.Client(t, identity)
	// One request at a time: it must pass beside what the other does not touch.
	for subresource, patch := range map[string]string{
		"status": `{"status": {"conditions": [{"type": "HostDiskPressure", "status": "True", "message": "new"}]}}`,
		"":       `{"metadata": {"annotations": {"taintlet.dev/held": null}}}`,
	} {
		if err := bed.PatchNode(t.Context(), agent, name, types.StrategicMergePatchType, patch, subresource); err != nil {
			t.Errorf("nodes/%s: %v", subresource, err)
		}
	}
	applyTo(t, c, name, most())
	applyTo(t, c, name, none(most()))
}

// litter writes into taintlet's fields what taintlet itself may not.
func litter(t *testing.T, c *cluster.Cluster, name string) {
	t.Helper()
	c.PatchNode(t, name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		taints.RecordAnnotation: letters(100_000), taints.HeldAnnotation: letters(100_000),
	}}})
	large := `{"type": "HostMemoryPressure", "status": "Odd", "reason": "` + letters(10_000) + `", "message": "` + letters(10_000) + `"}`
	var operations []string
	for range 30 {
		operations = append(operations, `{"op": "add", "path": "/status/conditions/-", "value": `+large+`}`)
	}
	if err := bed.PatchNode(t.Context(), c.Client(), name, types.JSONPatchType, "["+strings.Join(operations, ",")+"]", "status"); err != nil {
		t.Fatal(err)
	}
	// The agent's own entries are made strange.
	entries := c.GetNode(t, name).ManagedFields
	for i, entry := range entries {
		if entry.Manager == bed.Account {
			entries[i].FieldsV1 = metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:example.com/other":{}}},"f:spec":{},"f:status":{}}`)
		}
	}
	c.PatchNode(t, name, map[string]any{"metadata": map[string]any{"managedFields": entries}})
}

// The API server keeps ten managers and merges the oldest into one. Whichever
// that is, the agent goes on to write.
func TestMoreManagersThanTheAPIServerKeeps(t *testing.T) {
	c := denying.Require(t)
	const name, merged = "managed", "ancient-changes"
	c.Register(t, name)
	for i := range 15 {
		patch := marshal(t, map[string]any{"metadata": map[string]any{"labels": map[string]any{fmt.Sprint("label-", i): "x", "shared": fmt.Sprint(i)}}})
		manager := metav1.PatchOptions{FieldManager: fmt.Sprint("manager-", i)}
		if _, err := c.Client().CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(patch), manager); err != nil {
			t.Fatal(err)
		}
		desired := ours()
		if i%3 == 2 {
			desired = none(desired)
		}
		applyTo(t, c, name, desired)
	}
	if !slices.ContainsFunc(c.GetNode(t, name).ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == merged }) {
		t.Errorf("no manager was merged: %v", c.GetNode(t, name).ManagedFields)
	}
	forged := []metav1.ManagedFieldsEntry{}
	for _, entry := range c.GetNode(t, name).ManagedFields {
		if entry.Manager == merged {
			entry.FieldsV1 = metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:` + letters(1000) + `":{}}}}`)
		}
		forged = append(forged, entry)
	}
	patch := marshal(t, map[string]any{"metadata": map[string]any{"managedFields": forged}})
	err := bed.PatchNode(t.Context(), bed.Client(t, bed.AgentOf(t, c, name)), name, types.MergePatchType, patch)
	if err == nil || !strings.Contains(err.Error(), "adds nothing to the managedFields") {
		t.Errorf("the merged entry is forged: %v", err)
	}
}
