package security

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// policyAttacks write what the admission policies are to deny: too much, too
// often the same, somebody else's, and who wrote what.
func policyAttacks() []attack {
	agent := func(c *scene) kubernetes.Interface { return c.agent }
	cleanup := func(c *scene) kubernetes.Interface { return c.cleanup }
	return []attack{
		{name: "messages of up to 1.4 MB in conditions", guarded: true, run: patches(agent, largeConditions()),
			what: "the agent's token writes conditions with long messages and reasons"},
		{name: "20,000 duplicates of a condition", guarded: true, run: patches(agent, []patch{duplicates(2), duplicates(2000), duplicates(20_000)}),
			what: "the agent's token writes a condition twice, 2,000 and 20,000 times"},
		{name: "record and held fill the annotations", guarded: true, run: patches(agent, largeAnnotations()),
			what: "the agent's token writes long values into its own two annotations"},
		{name: "Events of up to 1.4 MB", guarded: true, run: events(largeEvents()),
			what: "the agent's token writes long Events"},
		{name: "what belongs to others", guarded: true, run: patches(agent, foreign()),
			what: "the agent's token writes others' taints, labels, annotations and conditions, and another Node"},
		{name: "Events in others' names", guarded: true, run: events(foreignEvents()),
			what: "the agent's token writes Events of other components and about other objects"},
		{name: "managedFields emptied, forged, filled", guarded: true, run: managedFields,
			what: "the agent's token writes who manages which field"},
		{name: "taintlet-cleanup-stale sets something", guarded: true, run: patches(cleanup, settings()),
			what: "the token of the hourly cleanup sets what it may only remove"},
	}
}

// patch is one write of a Node, of the attacked one unless other says so.
type patch struct {
	other       bool
	kind        types.PatchType
	subresource string // or none
	body        string
}

func ofStatus(body string) patch {
	return patch{kind: types.StrategicMergePatchType, subresource: "status", body: `{"status": {"conditions": [` + body + `]}}`}
}

func merge(body string) patch { return patch{kind: types.MergePatchType, body: body} }

func annotation(key, value string) string {
	return fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, key, value)
}

// patches tries each patch.
func patches(as func(*scene) kubernetes.Interface, all []patch) func(*testing.T, *scene) (int, int) {
	return func(t *testing.T, c *scene) (attempts, denied int) {
		for _, p := range all {
			name := c.node
			if p.other {
				name = c.other
			}
			var subresources []string
			if p.subresource != "" {
				subresources = []string{p.subresource}
			}
			_, err := as(c).CoreV1().Nodes().Patch(t.Context(), name, p.kind, []byte(p.body), metav1.PatchOptions{FieldManager: "taintlet"}, subresources...)
			attempts++
			denied += countDenied(t, fmt.Sprintf("%.150s", p.body), err)
		}
		return attempts, denied
	}
}

// countDenied is 1 for a denial. Anything else fails the test.
func countDenied(t *testing.T, what string, err error) int {
	t.Helper()
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) {
		return 1
	}
	t.Errorf("not denied: %s: %v", what, err)
	return 0
}

func conditionTypes() []string {
	return []string{"HostMemoryPressure", "HostDiskPressure", "HostPIDPressure", "HostNetworkUnavailable"}
}

func largeConditions() (all []patch) {
	for _, kind := range conditionTypes() {
		for _, size := range []int{messageBytes + 1, 100_000, 1_400_000} {
			for _, field := range []string{"message", "reason"} {
				all = append(all, ofStatus(fmt.Sprintf(`{"type": %q, "status": "True", %q: %q}`, kind, field, letters(size))))
			}
		}
	}
	return all
}

// duplicates replaces the list of conditions by one that has the same often.
func duplicates(count int) patch {
	list := strings.TrimSuffix(strings.Repeat(`{"type": "HostMemoryPressure", "status": "True"},`, count), ",")
	return patch{kind: types.MergePatchType, subresource: "status", body: `{"status": {"conditions": [` + list + `]}}`}
}

func largeAnnotations() (all []patch) {
	for key, most := range map[string]int{"taintlet.dev/record": recordBytes, "taintlet.dev/held": heldBytes} {
		for _, size := range []int{most + 1, 100_000, 261_000, 1_400_000} {
			p := merge(annotation(key, letters(size)))
			ofStatus := p
			ofStatus.subresource = "status"
			all = append(all, p, ofStatus)
		}
	}
	return all
}

func foreign() []patch {
	const taint = `{"op": "add", "path": "/spec/taints", "value": [{"key": %q, "effect": "NoExecute"}]}`
	all := []patch{
		merge(annotation("example.com/note", "x")),
		merge(`{"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}`),
		merge(`{"metadata": {"finalizers": ["example.com/hold"]}}`),
		merge(`{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "1"}]}}`),
		merge(`{"spec": {"unschedulable": true}}`),
		ofStatus(`{"type": "Ready", "status": "False"}`),
		ofStatus(`{"type": "HostOther", "status": "True"}`),
		{kind: types.MergePatchType, subresource: "status", body: `{"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}}`},
		{kind: types.MergePatchType, subresource: "status", body: `{"status": {"capacity": {"cpu": "1000"}}}`},
		{other: true, kind: types.MergePatchType, body: annotation("taintlet.dev/record", "x")},
		{other: true, kind: types.StrategicMergePatchType, subresource: "status", body: `{"status": {"conditions": [{"type": "HostMemoryPressure", "status": "True"}]}}`},
	}
	for _, key := range []string{"example.com/foreign", "node.kubernetes.io/not-ready", "node.kubernetes.io/out-of-service", "taintlet.dev/memory-pressure"} {
		all = append(all, patch{kind: types.JSONPatchType, body: "[" + fmt.Sprintf(taint, key) + "]"})
	}
	return all
}

// settings are what an agent may write, and a cleanup may not.
func settings() []patch {
	all := []patch{
		merge(annotation("taintlet.dev/record", "x")),
		merge(annotation("taintlet.dev/held", "node.kubernetes.io/memory-pressure")),
		{kind: types.JSONPatchType, body: `[{"op": "add", "path": "/spec/taints", "value": [{"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}]}]`},
	}
	for _, kind := range conditionTypes() {
		all = append(all, ofStatus(`{"type": "`+kind+`", "status": "Unknown", "message": "set by a cleanup"}`))
	}
	for _, p := range all {
		p.other = true
		all = append(all, p)
	}
	return all
}

// events tries to create an Event as the agent does, changed in one way each.
func events(changes []func(*corev1.Event)) func(*testing.T, *scene) (int, int) {
	return func(t *testing.T, c *scene) (attempts, denied int) {
		for i, change := range changes {
			event := &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{GenerateName: c.node + "."},
				InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: c.node},
				Source:         corev1.EventSource{Component: "taintlet", Host: c.node},
				Reason:         "Try", Message: "try", Type: corev1.EventTypeNormal, Count: 1,
			}
			change(event)
			_, err := c.agent.CoreV1().Events(metav1.NamespaceDefault).Create(t.Context(), event, metav1.CreateOptions{})
			attempts++
			denied += countDenied(t, fmt.Sprintf("change %d of an Event", i), err)
		}
		return attempts, denied
	}
}

func largeEvents() []func(*corev1.Event) {
	return []func(*corev1.Event){
		func(e *corev1.Event) { e.Message = letters(messageBytes + 1) },
		func(e *corev1.Event) { e.Message = letters(1_400_000) },
		func(e *corev1.Event) { e.Reason = letters(1_400_000) },
		func(e *corev1.Event) { e.Action = letters(1_400_000) },
		func(e *corev1.Event) { e.InvolvedObject.FieldPath = letters(1_400_000) },
		func(e *corev1.Event) { e.InvolvedObject.UID = types.UID(letters(1_400_000)) },
		func(e *corev1.Event) { e.Annotations = map[string]string{"example.com/note": letters(250_000)} },
		func(e *corev1.Event) { e.Labels = map[string]string{"example.com/note": "x"} },
		func(e *corev1.Event) { e.Finalizers = []string{"example.com/hold"} },
		func(e *corev1.Event) {
			e.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "1"}}
		},
	}
}

func foreignEvents() []func(*corev1.Event) {
	return []func(*corev1.Event){
		func(e *corev1.Event) { e.InvolvedObject.Name = "another" },
		func(e *corev1.Event) { e.InvolvedObject.Kind = "Pod" },
		func(e *corev1.Event) { e.Source.Component = "kubelet" },
		func(e *corev1.Event) { e.Source.Host = "another" },
		func(e *corev1.Event) { e.ReportingController = "kubelet" },
	}
}

// managedFields changes what the API server remembers of who wrote what.
func managedFields(t *testing.T, c *scene) (attempts, denied int) {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	for i, change := range []func([]metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry{
		func([]metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry { return []metav1.ManagedFieldsEntry{{}} },
		func([]metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry { return []metav1.ManagedFieldsEntry{} },
		func(all []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
			return append(all, entry("kubectl", metav1.ManagedFieldsOperationApply, `{"f:metadata":{"f:labels":{"f:zone":{}}}}`))
		},
		func(all []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
			return append(all, entry("taintlet", metav1.ManagedFieldsOperationUpdate, `{"f:spec":{"f:`+letters(500_000)+`":{}}}`))
		},
		func(all []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
			for i := range all {
				all[i].Manager += "-too"
			}
			return all
		},
	} {
		node, err := c.admin.CoreV1().Nodes().Get(t.Context(), c.node, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": change(node.ManagedFields)}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.agent.CoreV1().Nodes().Patch(t.Context(), c.node, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "taintlet"})
		attempts++
		denied += countDenied(t, fmt.Sprintf("change %d of managedFields", i), err)
	}
	return attempts, denied
}
