package security

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// largest is how many annotations of three letters one Node of the tests has. etcd
// takes about 60,000 with their managedFields, which takes the API server twice as
// long.
const largest = 35_000

// tiny is a map of that many entries whose keys are as short as can be, and whose values are empty.
func tiny(count int) map[string]any {
	const digits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	all := make(map[string]any, count)
	for i := range count {
		all[string([]byte{digits[i/len(digits)/len(digits)], digits[i/len(digits)%len(digits)], digits[i%len(digits)]})] = ""
	}
	return all
}

func ofMetadata(field string, value any) map[string]any {
	return map[string]any{"metadata": map[string]any{field: value}}
}

// goneFrom is what removes the entries in a merge patch.
func goneFrom(entries map[string]any) map[string]any {
	gone := maps.Clone(entries)
	for key := range gone {
		gone[key] = nil
	}
	return gone
}

// Whoever writes Nodes may make one as large as the API server stores. Its agent
// still sets and removes its taint, and tells its conditions: only its own
// annotations have to stay as they are.
func TestLargestNodeIsTainted(t *testing.T) {
	c := denying.Require(t)
	const name = "largest"
	c.Register(t, name)
	identity := bed.AgentOf(t, c, name)
	agent := bed.Client(t, identity)
	applyTo(t, c, name, ours())
	for _, count := range []int{taints.MaxForeignAnnotations - 10, largest} {
		c.PatchNode(t, name, ofMetadata("annotations", tiny(count)))
		t.Logf("%d annotations, a Node of %d bytes", count, c.GetNode(t, name).Size())
		desired := []taints.Desired{none(ours()), ours()}
		for i := range desired {
			if count == largest {
				desired[i].Annotations = nil // as the agent's decider does
			}
			begin := time.Now()
			applyTo(t, c, name, desired[i])
			t.Logf("two patches in %s", time.Since(begin))
		}
		begin := time.Now()
		c.PatchNode(t, name, ofMetadata("labels", map[string]any{"count": fmt.Sprint(count)}))
		t.Logf("a patch of an administrator, beside which nothing is compared, in %s", time.Since(begin))
	}

	const held = `{"metadata": {"annotations": {"taintlet.dev/held": "x"}}}`
	for what, patch := range map[string]string{
		"held":                           held,
		"all annotations are removed":    marshal(t, ofMetadata("annotations", goneFrom(tiny(largest)))),
		"one takes the place of another": `{"metadata": {"annotations": {"aaa": null, "zzzz": ""}}}`,
	} {
		begin := time.Now()
		err := bed.PatchNode(t.Context(), agent, name, types.MergePatchType, patch)
		t.Logf("%s: refused in %s", what, time.Since(begin))
		if !bed.DeniedBy(err, "taintlet-nodes") || !strings.Contains(err.Error(), "and none of a Node that has more than 500 others") {
			t.Errorf("%s: not denied: %.300v", what, err)
		}
	}

	// One more than the limit is refused, and the limit itself is not.
	c.PatchNode(t, name, ofMetadata("annotations", goneFrom(tiny(largest))))
	more := taints.MaxForeignAnnotations - foreignAnnotations(c.GetNode(t, name))
	c.PatchNode(t, name, ofMetadata("annotations", tiny(more)))
	if err := bed.PatchNode(t.Context(), agent, name, types.MergePatchType, held); err != nil {
		t.Errorf("beside %d annotations: %v", taints.MaxForeignAnnotations, err)
	}
	c.PatchNode(t, name, ofMetadata("annotations", map[string]any{"example.com/one-more": ""}))
	if node := apiserver.NodeOf(c.GetNode(t, name)); taints.AnnotationsChangeable(node) {
		t.Errorf("%d annotations may be changed", len(node.Annotations))
	}
	err := bed.PatchNode(t.Context(), agent, name, types.MergePatchType, `{"metadata": {"annotations": {"taintlet.dev/held": null}}}`)
	if !bed.DeniedBy(err, "taintlet-nodes") {
		t.Errorf("beside one more: %v", err)
	}
}

func foreignAnnotations(node *corev1.Node) int {
	foreign := maps.Clone(node.Annotations)
	delete(foreign, taints.RecordAnnotation)
	delete(foreign, taints.HeldAnnotation)
	return len(foreign)
}

func marshal(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What a stolen token adds is counted before anything else: the cost of a refusal
// must not grow with the square of what is refused. Each has its own rule, and none
// of them ends at a limit of the API server.
func TestRefusedByCount(t *testing.T) {
	c := denying.Require(t)
	const name = "counted"
	c.Register(t, name)
	applyTo(t, c, name, ours())
	agent := bed.Client(t, bed.AgentOf(t, c, name))
	var managers []metav1.ManagedFieldsEntry
	for i := range 5000 {
		managers = append(managers, metav1.ManagedFieldsEntry{
			Manager: fmt.Sprint("m", i), Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:a":{}}`),
		})
	}
	fields := func(prefix, suffix string) string {
		var list []string
		for key := range tiny(20_000) {
			list = append(list, `"f:`+key+`":{}`)
		}
		return prefix + strings.Join(list, ",") + suffix
	}
	entry := func(fields string) any {
		return append(slices.Clone(c.GetNode(t, name).ManagedFields), metav1.ManagedFieldsEntry{
			Manager: "taintlet", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		})
	}
	const adds = "adds nothing to the managedFields of a Node"
	for _, a := range []struct {
		what, says, subresource string
		patch                   any
	}{
		{"annotations", "no annotations but taintlet.dev/record", "", ofMetadata("annotations", tiny(20_000))},
		{"annotations, by the status", "no annotations but taintlet.dev/record", "status", ofMetadata("annotations", tiny(20_000))},
		{"labels", "no metadata of a Node but its annotations", "", ofMetadata("labels", tiny(20_000))},
		{"managers", adds, "", ofMetadata("managedFields", append(slices.Clone(c.GetNode(t, name).ManagedFields), managers...))},
		{"fields", adds, "", ofMetadata("managedFields", entry(fields(`{`, `}`)))},
		{"annotations managed", adds, "", ofMetadata("managedFields", entry(fields(`{"f:metadata":{"f:annotations":{`, `}}}`)))},
		{"fields of a condition", adds, "", ofMetadata("managedFields", entry(fields(`{"f:status":{"f:conditions":{"k:{\"type\":\"HostMemoryPressure\"}":{`, `}}}}`)))},
	} {
		text := marshal(t, a.patch)
		begin := time.Now()
		err := bed.PatchNode(t.Context(), agent, name, types.MergePatchType, text, a.subresource)
		t.Logf("%s: %d bytes refused in %s", a.what, len(text), time.Since(begin))
		if !bed.DeniedBy(err, "taintlet-nodes") || !strings.Contains(err.Error(), a.says) {
			t.Errorf("%s: not denied with %q: %.300v", a.what, a.says, err)
		}
	}
}

// On a Node with more taints or conditions than any has, the agent changes the other
// of the two, and the refusal says why it cannot change this one.
func TestMoreThanIsComparedStays(t *testing.T) {
	c := denying.Require(t)
	const name = "overfull"
	c.Register(t, name)
	full := map[string][]map[string]any{}
	for _, taint := range ours().Taints { // the list is replaced as a whole
		full["taints"] = append(full["taints"], map[string]any{"key": taint.Key, "effect": taint.Effect})
	}
	for i := range 501 {
		full["taints"] = append(full["taints"], map[string]any{"key": fmt.Sprint("taint-", i), "effect": "PreferNoSchedule"})
		full["conditions"] = append(full["conditions"], map[string]any{"type": fmt.Sprint("Condition", i), "status": "False"})
	}
	ofTaints := taints.Desired{Owned: ours().Owned}
	ofConditions := taints.Desired{Gone: []string{"HostMemoryPressure"}}
	for _, a := range []struct {
		subresource      string
		patch            map[string]any
		allowed, refused taints.Desired
		says             string
	}{
		{"", map[string]any{"spec": map[string]any{"taints": full["taints"]}}, ofConditions, ofTaints, "no taints of a Node that has more than 500"},
		{"status", map[string]any{"status": map[string]any{"conditions": full["conditions"]}}, ofTaints, ofConditions, "no conditions of a Node that has more than 500"},
	} {
		applyTo(t, c, name, ours())
		before := c.GetNode(t, name)
		if err := bed.PatchNode(t.Context(), c.Client(), name, types.StrategicMergePatchType, marshal(t, a.patch), a.subresource); err != nil {
			t.Fatal(err)
		}
		applyTo(t, c, name, a.allowed)
		_, err := agentOf(t, c, name).Apply(t.Context(), apiserver.NodeOf(c.GetNode(t, name)), a.refused)
		if err == nil || !strings.Contains(err.Error(), a.says) {
			t.Errorf("not refused with %q: %v", a.says, err)
		}
		if a.subresource == "" {
			c.SetTaints(t, name, before.Spec.Taints...)
		}
	}
}

func agentOf(t *testing.T, c *cluster.Cluster, name string) *apiserver.Client {
	t.Helper()
	agent, err := apiserver.NewClient(bed.AgentOf(t, c, name), name)
	if err != nil {
		t.Fatal(err)
	}
	return agent
}
