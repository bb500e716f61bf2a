package security

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/taintlet/taintlet/test/bed"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/taintlet/taintlet/taints"
)

// The most that the policies let taintlet write, in bytes.
const (
	recordBytes  = 8192
	heldBytes    = 512
	reasonBytes  = 128
	messageBytes = 2048
)

// letters returns a text of that many bytes.
func letters(bytes int) string { return strings.Repeat("x", bytes) }

// annotationBounds write more than taintlet ever does into its own annotations.
func annotationBounds() (all []attempt) {
	const sizes = "8192 bytes at most"
	annotate := func(key, value string) string {
		return fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, key, value)
	}
	for _, patch := range []func(what, says, patch string) attempt{node, status} {
		all = append(all,
			patch("a record that is too long", sizes, annotate(taints.RecordAnnotation, letters(recordBytes+1))),
			patch("a record with more bytes than letters", sizes, annotate(taints.RecordAnnotation, strings.Repeat("ä", recordBytes/2+1))),
			patch("a record that leaves no room for others' annotations", sizes, annotate(taints.RecordAnnotation, letters(261_000))),
			patch("a held annotation that is too long", sizes, annotate(taints.HeldAnnotation, letters(heldBytes+1))),
		)
	}
	return all
}

// condition is one of taintlet's own, with more fields.
func condition(more string) string {
	return `{"type": "HostMemoryPressure", "status": "True", ` + more + `}`
}

// conditionBounds write more into a condition than taintlet does.
func conditionBounds() []attempt {
	const conditionSizes = "128 bytes at most, its message 2048"
	conditions := func(list string) string { return `{"status": {"conditions": [` + list + `]}}` }
	return []attempt{
		status("a message that is too long", conditionSizes, conditions(condition(`"message": "`+letters(messageBytes+1)+`"`))),
		status("a message of a megabyte", conditionSizes, conditions(condition(`"message": "`+letters(1_400_000)+`"`))),
		status("a reason that is too long", conditionSizes, conditions(condition(`"reason": "`+letters(reasonBytes+1)+`"`))),
		status("a status that is none", conditionSizes, conditions(`{"type": "HostMemoryPressure", "status": "`+letters(1000)+`"}`)),
	}
}

// duplicates write a condition, or taints, more often than it is there.
func duplicates() []attempt {
	many, large := `{"status": {"conditions": [`+strings.Repeat(condition(`"reason": "a"`)+",", 19_999)+condition(`"reason": "a"`)+`]}}`, "no more conditions than its own"
	return []attempt{
		patchedJSON("nodes/status: a condition twice", "each of its conditions once", "status", "/status/conditions/-", condition(`"reason": "a"`), 2),
		patchedJSON("nodes/status: 9,000 conditions", large, "status", "/status/conditions/-", condition(`"reason": "a"`), 9000),
		{what: "nodes/status: 20,000 conditions", policy: "taintlet-nodes", says: large, try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			return bed.PatchNode(ctx, as, s.own, types.MergePatchType, many, "status")
		}},
		patchedJSON("nodes: 9,000 taints", "no more taints than its rules ask for", "", "/spec/taints/-", `{"key": "third", "effect": "NoSchedule"}`, 9000),
	}
}

// patchedJSON adds a value many times by one JSON patch.
func patchedJSON(what, says, subresource, path, value string, times int) attempt {
	operation := `{"op": "add", "path": "` + path + `", "value": ` + value + `}`
	if strings.Contains(value, "third") { // taints must differ, or the API server refuses them first
		var all []string
		for i := range times {
			all = append(all, strings.Replace(operation, "third", fmt.Sprint("third-", i), 1))
		}
		operation = strings.Join(all, ",")
	} else {
		operation = strings.Join(slices.Repeat([]string{operation}, times), ",")
	}
	return attempt{what: what, policy: "taintlet-nodes", says: says, try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
		return bed.PatchNode(ctx, as, s.own, types.JSONPatchType, "["+operation+"]", subresource)
	}}
}

// managerAttempts write into managedFields, where the API server keeps who wrote
// what: it believes a patch. A subresource's patch it does not.
func managerAttempts() []attempt {
	return append(forgeries(),
		attempt{what: "nodes: another's name", policy: "taintlet-nodes", says: "under its own name", try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			_, err := as.CoreV1().Nodes().Patch(ctx, s.own, types.MergePatchType, []byte(`{"metadata": {"annotations": {"taintlet.dev/record": "x"}}}`), metav1.PatchOptions{FieldManager: "kubelet"})
			return err
		}},
		attempt{what: "nodes: server-side apply", policy: "taintlet-nodes", says: "adds nothing to the managedFields of a Node", try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			_, err := as.CoreV1().Nodes().Patch(ctx, s.own, types.ApplyPatchType,
				[]byte(`{"apiVersion": "v1", "kind": "Node", "metadata": {"annotations": {"taintlet.dev/record": "x"}}}`), metav1.PatchOptions{FieldManager: bed.Account})
			return err
		}},
	)
}

// forgeries are patches of managedFields themselves.
func forgeries() []attempt {
	const adds, removes = "adds nothing to the managedFields of a Node", "removes nothing from the managedFields of a Node"
	forge := func(what, says string, change func([]metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry) attempt {
		return attempt{what: "nodes: managedFields: " + what, policy: "taintlet-nodes", says: says, try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			node, err := as.CoreV1().Nodes().Get(ctx, s.own, metav1.GetOptions{})
			if err != nil {
				return err
			}
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": change(node.ManagedFields)}})
			if err != nil {
				return err
			}
			return bed.PatchNode(ctx, as, s.own, types.MergePatchType, string(patch))
		}}
	}
	// The others' entries, each with these fields more.
	grow := func(more string) func([]metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
			for i, entry := range entries {
				raw := strings.TrimSuffix(entry.FieldsV1.GetRawString(), "}")
				entries[i].FieldsV1 = metav1.NewFieldsV1(raw + `,` + more + `}`)
			}
			return entries
		}
	}
	another := func(name string, operation metav1.ManagedFieldsOperationType, fields string) func([]metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
			return append(entries, metav1.ManagedFieldsEntry{
				Manager: name, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
			})
		}
	}
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, `,"f:%s-%d":{}`, letters(100), i)
	}
	return []attempt{
		forge("forgotten", removes, func([]metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry { return []metav1.ManagedFieldsEntry{{}} }),
		forge("emptied", removes, func([]metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry { return []metav1.ManagedFieldsEntry{} }),
		forge("one entry is removed", removes, func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry { return entries[1:] }),
		forge("what another manages is removed", removes, func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
			for i := range entries {
				entries[i].FieldsV1 = metav1.NewFieldsV1(`{}`)
			}
			return entries
		}),
		forge("entries change names", adds, func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
			for i := range entries {
				entries[i].Manager += "-too"
			}
			return entries
		}),
		forge("another manages more", adds, grow(`"f:other":{}`)),
		// What it applies next would remove the taints of all.
		forge("one that applies manages our fields", adds, func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
			for i := range entries {
				if entries[i].Manager == applier {
					entries[i].FieldsV1 = metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:applied":{}}},"f:spec":{"f:taints":{}}}`)
				}
			}
			return entries
		}),
		forge("another manages a lot more", adds, grow(`"f:other":{".":{}`+many.String()+`}`)),
		forge("a manager is invented", adds, another("kubectl", "Update", `{"f:spec":{"f:taints":{}}}`)),
		forge("one that applies is invented", adds, another("taintlet", "Apply", `{"f:spec":{"f:taints":{}}}`)),
		forge("taintlet manages more", adds, another("taintlet", "Update", `{"f:spec":{"f:unschedulable":{}}}`)),
		forge("taintlet manages a foreign condition", adds, another("taintlet", "Update", `{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:status":{}}}}}`)),
		forge("taintlet manages much of a condition", adds, another("taintlet", "Update", `{"f:status":{"f:conditions":{"k:{\"type\":\"HostMemoryPressure\"}":{"f:type":{}`+many.String()+`}}}}`)),
		forge("taintlet manages parts of a text", adds, another("taintlet", "Update", `{"f:status":{"f:conditions":{"k:{\"type\":\"HostMemoryPressure\"}":{"f:message":{"f:`+letters(1000)+`":{}}}}}}`)),
		forge("the oldest are merged", adds, another("ancient-changes", "Update", `{"f:spec":{"f:taints":{}}}`)),
	}
}

// ownEvent is an Event as the agent's recorder writes it.
func ownEvent(node string) *corev1.Event {
	now := metav1.Now()
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: node + "."},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node, UID: "4c4e7a4a-4b9c-4a31-9d0b-8d4f4b3f9e11"},
		Source:         corev1.EventSource{Component: "taintlet", Host: node},
		Reason:         "Try", Message: "try", Type: corev1.EventTypeNormal, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		ReportingController: "taintlet", ReportingInstance: node,
	}
}

// eventBoundAttempts write more into an Event than the agent does.
func eventBoundAttempts() []attempt {
	const fields, metadata, origin, sizes = "neither action, related object nor series", "no labels, annotations, owners or finalizers", "come from taintlet on its own Node", "128 bytes at most, its message 2048"
	create := func(what, says string, change func(*corev1.Event)) attempt {
		return attempt{what: "events: " + what, policy: "taintlet-events", says: says, try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			event := ownEvent(s.own)
			change(event)
			_, err := as.CoreV1().Events("default").Create(ctx, event, metav1.CreateOptions{})
			return err
		}}
	}
	update := func(what, says, patch string) attempt {
		return attempt{what: "events: patched: " + what, as: withoutRBAC, policy: "taintlet-events", says: says, try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			event, err := as.CoreV1().Events("default").Create(ctx, ownEvent(s.own), metav1.CreateOptions{})
			if err != nil {
				return err
			}
			_, err = as.CoreV1().Events("default").Patch(ctx, event.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		}}
	}
	forged := `"managedFields": [{"manager": "kubelet", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:count": {}}}]`
	return []attempt{
		create("a message that is too long", sizes, func(e *corev1.Event) { e.Message = letters(messageBytes + 1) }),
		create("a message of a megabyte", sizes, func(e *corev1.Event) { e.Message = letters(1_400_000) }),
		create("a reason that is too long", sizes, func(e *corev1.Event) { e.Reason = letters(reasonBytes + 1) }),
		create("a type that is none", origin, func(e *corev1.Event) { e.Type = letters(1000) }),
		create("an action", fields, func(e *corev1.Event) { e.Action = "Try" }),
		create("a related object", fields, func(e *corev1.Event) { e.Related = &corev1.ObjectReference{Name: letters(1000)} }),
		create("a series", fields, func(e *corev1.Event) {
			e.Series = &corev1.EventSeries{Count: 2, LastObservedTime: metav1.NowMicro()}
		}),
		create("a field of the Node", fields, func(e *corev1.Event) { e.InvolvedObject.FieldPath = letters(1000) }),
		create("a version of the Node", fields, func(e *corev1.Event) { e.InvolvedObject.ResourceVersion = letters(1000) }),
		create("a UID that is none", origin, func(e *corev1.Event) { e.InvolvedObject.UID = types.UID(letters(1000)) }),
		create("another API of Nodes", origin, func(e *corev1.Event) { e.InvolvedObject.APIVersion = letters(1000) }),
		create("another host", origin, func(e *corev1.Event) { e.Source.Host = letters(1000) }),
		create("another controller", origin, func(e *corev1.Event) { e.ReportingController = "kubelet" }),
		create("another instance", origin, func(e *corev1.Event) { e.ReportingInstance = letters(1000) }),
		create("labels", metadata, func(e *corev1.Event) { e.Labels = map[string]string{"zone": "b"} }),
		create("annotations", metadata, func(e *corev1.Event) { e.Annotations = map[string]string{"note": letters(200_000)} }),
		create("finalizers", metadata, func(e *corev1.Event) { e.Finalizers = []string{"example.com/hold"} }),
		create("owners", metadata, func(e *corev1.Event) {
			e.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "1"}}
		}),
		create("managedFields", "adds nothing to the managedFields of an Event", func(e *corev1.Event) {
			e.ManagedFields = []metav1.ManagedFieldsEntry{{
				Manager: "m", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:` + letters(1000) + `":{}}`),
			}}
		}),
		update("a message that is too long", sizes, `{"message": "`+letters(messageBytes+1)+`"}`),
		update("a finalizer", metadata, `{"metadata": {"finalizers": ["example.com/hold"]}}`),
		update("managedFields", "adds nothing to the managedFields of an Event", `{"metadata": {`+forged+`}}`),
	}
}

// leaseBoundAttempts write more into a Lease than an agent does.
func leaseBoundAttempts() []attempt {
	update := func(what, says string, change func(*attempted, *coordinationv1.Lease)) attempt {
		return attempt{what: "leases: " + what, policy: "taintlet-leases", says: says, try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			lease, err := as.CoordinationV1().Leases(bed.Namespace).Get(ctx, "taintlet-evict-0", metav1.GetOptions{})
			if err != nil {
				return err
			}
			lease.Spec.HolderIdentity = &s.own
			change(s, lease)
			_, err = as.CoordinationV1().Leases(bed.Namespace).Update(ctx, lease, metav1.UpdateOptions{})
			return err
		}}
	}
	entry := func(operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: "m", Operation: operation, APIVersion: "coordination.k8s.io/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	const adds = "adds nothing to the managedFields of a Lease"
	return []attempt{
		update("annotations", "no metadata of a Lease", func(_ *attempted, l *coordinationv1.Lease) {
			l.Annotations = map[string]string{"note": letters(200_000)}
		}),
		update("managedFields: a manager that applies", adds, func(_ *attempted, l *coordinationv1.Lease) {
			l.ManagedFields = append(l.ManagedFields, entry("Apply", `{"f:metadata":{"f:labels":{"f:app.kubernetes.io/name":{}}}}`))
		}),
		update("managedFields: fields that are none", adds, func(_ *attempted, l *coordinationv1.Lease) {
			l.ManagedFields = append(l.ManagedFields, entry("Update", `{"f:spec":{"f:`+letters(1000)+`":{}}}`))
		}),
		update("managedFields: emptied", "removes nothing from the managedFields of a Lease", func(_ *attempted, l *coordinationv1.Lease) {
			l.ManagedFields = []metav1.ManagedFieldsEntry{{}}
		}),
	}
}
