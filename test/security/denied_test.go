package security

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/taintlet/taintlet/test/bed"
)

// attempt is something that an agent must not be able to do.
type attempt struct {
	what string
	// as is who tries; nil: the agent with its own token.
	as     func(*attempted) kubernetes.Interface
	policy string // that denies it
	says   string // a part of its message
	try    func(ctx context.Context, s *attempted, as kubernetes.Interface) error
}

// attempted is what attempts are made on.
type attempted struct {
	own, other  string // names of Nodes
	agent       kubernetes.Interface
	withoutRBAC kubernetes.Interface // the agent, if RBAC let it do everything
	withoutPod  kubernetes.Interface // the same without a Node in its token
	unbound     kubernetes.Interface // a token for no pod
	pending     kubernetes.Interface // a token of a pod that is on no Node
	cleaner     kubernetes.Interface // who cleans up every hour, if RBAC let it do everything
}

func withoutRBAC(s *attempted) kubernetes.Interface { return s.withoutRBAC }

// node is an attempt to patch the own Node, status one to patch its status.
func node(what, says, patch string) attempt   { return patchOf(what, says, patch, false) }
func status(what, says, patch string) attempt { return patchOf(what, says, patch, true) }

func patchOf(what, says, patch string, ofStatus bool) attempt {
	var subresources []string
	if ofStatus {
		what, subresources = "nodes/status: "+what, []string{"status"}
	} else {
		what = "nodes: " + what
	}
	return attempt{what: what, policy: "taintlet-nodes", says: says, try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
		return bed.PatchNode(ctx, as, s.own, types.StrategicMergePatchType, patch, subresources...)
	}}
}

// The Node that the attempts are made on; each changes a part of it.
const scenery = `{
"metadata": {
  "labels": {"zone": "a"},
  "annotations": {"example.com/note": "a", "taintlet.dev/paused": "MemoryPressure"},
  "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "1"}],
  "finalizers": ["example.com/hold"]},
"spec": {"taints": [
  {"key": "first", "value": "a", "effect": "NoSchedule"},
  {"key": "second", "effect": "PreferNoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}]}}`

func taintAttempts() []attempt {
	const first, second = `{"key": "first", "value": "a", "effect": "NoSchedule"}`, `{"key": "second", "effect": "PreferNoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}`
	list := func(what, says, taints string) attempt {
		a := node(what, says, "")
		a.try = func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			return bed.PatchNode(ctx, as, s.own, types.MergePatchType, `{"spec": {"taints": [`+taints+`]}}`)
		}
		return a
	}
	return []attempt{
		list("a foreign taint is added", "they are: third:NoSchedule", first+","+second+`, {"key": "third", "effect": "NoSchedule"}`),
		list("a foreign taint is removed", "they are: first:NoSchedule", second),
		list("all foreign taints are removed", "they are: first:NoSchedule, second:PreferNoSchedule", ""),
		list("the value of a foreign taint changes", "they are: first:NoSchedule", `{"key": "first", "value": "b", "effect": "NoSchedule"},`+second),
		list("the effect of a foreign taint changes", "they are: first:NoSchedule, first:NoExecute", `{"key": "first", "value": "a", "effect": "NoExecute"},`+second),
		list("the time of a foreign taint changes", "they are: second:PreferNoSchedule", first+`, {"key": "second", "effect": "PreferNoSchedule", "timeAdded": "2026-01-02T00:00:00Z"}`),
		list("the time of a foreign taint goes", "they are: second:PreferNoSchedule", first+`, {"key": "second", "effect": "PreferNoSchedule"}`),
		list("foreign taints change places", "they are: their order", second+","+first),
		list("eviction by a well-known key", "no rule asks for node.kubernetes.io/memory-pressure:NoExecute", first+","+second+`, {"key": "node.kubernetes.io/memory-pressure", "effect": "NoExecute"}`),
		list("eviction by a stand-in", "they are: taintlet.dev/memory-pressure:NoExecute", first+","+second+`, {"key": "taintlet.dev/memory-pressure", "effect": "NoExecute"}`),
		list("another effect of an own key", "they are: node.kubernetes.io/disk-pressure:PreferNoSchedule", first+","+second+`, {"key": "node.kubernetes.io/disk-pressure", "effect": "PreferNoSchedule"}`),
		list("the start-up taint is set", "no rule asks for example.com/starting:NoSchedule: taintlet may remove it, not set it", first+","+second+`, {"key": "example.com/starting", "effect": "NoSchedule"}`),
		list("another effect of the start-up taint", "they are: example.com/starting:PreferNoSchedule", first+","+second+`, {"key": "example.com/starting", "effect": "PreferNoSchedule"}`),
		list("not-ready", "they are: node.kubernetes.io/not-ready:NoExecute", first+","+second+`, {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}`),
		list("out-of-service", "they are: node.kubernetes.io/out-of-service:NoExecute", first+","+second+`, {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}`),
		list("a key of our prefix that is no stand-in", "they are: taintlet.dev/other:NoSchedule", first+","+second+`, {"key": "taintlet.dev/other", "effect": "NoSchedule"}`),
		{what: "nodes: a JSON patch of a foreign taint", policy: "taintlet-nodes", says: "they are: first:NoSchedule", try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			return bed.PatchNode(ctx, as, s.own, types.JSONPatchType, `[{"op": "remove", "path": "/spec/taints/0"}]`)
		}},
		{what: "nodes: server-side apply of taints by force", policy: "taintlet-nodes", says: "they are: first:NoSchedule, second:PreferNoSchedule", try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			force := true
			_, err := as.CoreV1().Nodes().Patch(ctx, s.own, types.ApplyPatchType,
				[]byte(`{"apiVersion": "v1", "kind": "Node", "spec": {"taints": []}}`), metav1.PatchOptions{FieldManager: bed.Account, Force: &force})
			return err
		}},
	}
}

// metadataAttempts are made through both subresources, which both take metadata.
func metadataAttempts() []attempt {
	const annotations, metadata = "no annotations but taintlet.dev/record and taintlet.dev/held", "no metadata of a Node but its annotations"
	var all []attempt
	for _, patch := range []func(what, says, patch string) attempt{node, status} {
		all = append(all,
			patch("a label is added", metadata, `{"metadata": {"labels": {"pool": "b"}}}`),
			patch("a label changes", metadata, `{"metadata": {"labels": {"zone": "b"}}}`),
			patch("a label is removed", metadata, `{"metadata": {"labels": {"zone": null}}}`),
			patch("an annotation is added", annotations, `{"metadata": {"annotations": {"example.com/more": "b"}}}`),
			patch("an annotation changes", annotations, `{"metadata": {"annotations": {"example.com/note": "b"}}}`),
			patch("an annotation is removed", annotations, `{"metadata": {"annotations": {"example.com/note": null}}}`),
			patch("all annotations are removed", annotations, `{"metadata": {"annotations": null}}`),
			patch("a person's pause is ended", annotations, `{"metadata": {"annotations": {"taintlet.dev/paused": null}}}`),
			patch("a foreign annotation beside our own", annotations, `{"metadata": {"annotations": {"taintlet.dev/held": "x", "example.com/more": "b"}}}`),
			patch("an owner is added", metadata, `{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "another", "uid": "2"}]}}`),
			patch("the owners go", metadata, `{"metadata": {"ownerReferences": null}}`),
			patch("a finalizer is added", metadata, `{"metadata": {"finalizers": ["example.com/mine"]}}`),
			patch("the finalizers go", metadata, `{"metadata": {"finalizers": null}}`),
		)
	}
	return all
}

func conditionAttempts() []attempt {
	const conditions = "no conditions but its own"
	return []attempt{
		status("a foreign condition is added", conditions, `{"status": {"conditions": [{"type": "KernelDeadlock", "status": "True"}]}}`),
		status("a condition whose type only begins like ours", conditions, `{"status": {"conditions": [{"type": "HostMemoryPressureToo", "status": "True"}]}}`),
		status("Ready becomes False", conditions, `{"status": {"conditions": [{"type": "Ready", "status": "False"}]}}`),
		status("MemoryPressure becomes True", conditions, `{"status": {"conditions": [{"type": "MemoryPressure", "status": "True"}]}}`),
		status("the heartbeat of a foreign condition", conditions, `{"status": {"conditions": [{"type": "Ready", "lastHeartbeatTime": "2030-01-01T00:00:00Z"}]}}`),
		status("the message of a foreign condition", conditions, `{"status": {"conditions": [{"type": "Ready", "message": "fine"}]}}`),
		status("a foreign condition is removed", conditions, `{"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}}`),
		status("all conditions are replaced", conditions, `{"status": {"conditions": [{"$patch": "replace"}]}}`),
		status("a foreign condition beside our own", conditions, `{"status": {"conditions": [{"type": "HostDiskPressure", "status": "True"}, {"type": "DiskPressure", "status": "True"}]}}`),
	}
}

func identityAttempts() []attempt {
	const ours = `{"metadata": {"annotations": {"taintlet.dev/held": "node.kubernetes.io/disk-pressure"}}}`
	const condition = `{"status": {"conditions": [{"type": "HostDiskPressure", "status": "True"}]}}`
	of := func(what, says string, as func(*attempted) kubernetes.Interface, name func(*attempted) string, patch string, subresources ...string) attempt {
		return attempt{what: what, as: as, policy: "taintlet-nodes", says: says, try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			return bed.PatchNode(ctx, as, name(s), types.StrategicMergePatchType, patch, subresources...)
		}}
	}
	const another, noPod = "may not change another Node", "not that of a pod on a Node"
	own, other := func(s *attempted) string { return s.own }, func(s *attempted) string { return s.other }
	unbound := func(s *attempted) kubernetes.Interface { return s.unbound }
	pending := func(s *attempted) kubernetes.Interface { return s.pending }
	withoutPod := func(s *attempted) kubernetes.Interface { return s.withoutPod }
	return []attempt{
		of("nodes: another Node", another, nil, other, ours),
		of("nodes/status: another Node", another, nil, other, condition, "status"),
		of("nodes: a token for no pod", noPod, unbound, own, ours),
		of("nodes/status: a token for no pod", noPod, unbound, own, condition, "status"),
		of("nodes: a token of a pod on no Node", noPod, pending, own, ours),
		of("nodes: impersonation without a Node", noPod, withoutPod, own, ours),
	}
}

// verbAttempts are also denied where RBAC allows them.
func verbAttempts() []attempt {
	all := []attempt{
		{what: "nodes: create", try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			_, err := as.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{})
			return err
		}},
		{what: "nodes: delete", try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			return as.CoreV1().Nodes().Delete(ctx, s.own, metav1.DeleteOptions{})
		}},
		{what: "nodes: delete all", try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			return as.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + s.own})
		}},
		{what: "nodes/proxy: connect", try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			return as.CoreV1().RESTClient().Get().Resource("nodes").Name(s.own).SubResource("proxy").Do(ctx).Error()
		}},
		{what: "nodes: update", says: "nothing of a Node's spec but taints", try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			node, err := as.CoreV1().Nodes().Get(ctx, s.own, metav1.GetOptions{})
			if err != nil {
				return err
			}
			node.Spec.Unschedulable = true
			_, err = as.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
			return err
		}},
	}
	for i := range all {
		all[i].as, all[i].policy = withoutRBAC, "taintlet-nodes"
		if all[i].says == "" {
			all[i].says = "updates Nodes and does nothing else"
		}
	}
	return all
}

func eventAttempts() []attempt {
	event := func(kind, name, component string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{GenerateName: "try-"},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: kind, Name: name, Namespace: map[string]string{"Pod": "default"}[kind]},
			Source:         corev1.EventSource{Component: component},
			Reason:         "Try", Type: corev1.EventTypeNormal,
		}
	}
	const ownOnly = "Events of its own about its own Node only"
	create := func(what string, event func(*attempted) *corev1.Event) attempt {
		return attempt{what: "events: " + what, policy: "taintlet-events", says: ownOnly, try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			_, err := as.CoreV1().Events("default").Create(ctx, event(s), metav1.CreateOptions{})
			return err
		}}
	}
	return []attempt{
		create("about another Node", func(s *attempted) *corev1.Event { return event("Node", s.other, "taintlet") }),
		create("about a pod", func(*attempted) *corev1.Event { return event("Pod", "some", "taintlet") }),
		create("in the kubelet's name", func(s *attempted) *corev1.Event { return event("Node", s.own, "kubelet") }),
		{what: "events: the kubelet's is changed", as: withoutRBAC, policy: "taintlet-events", says: ownOnly, try: func(ctx context.Context, _ *attempted, as kubernetes.Interface) error {
			_, err := as.CoreV1().Events("default").Patch(ctx, "of-kubelet", types.MergePatchType, []byte(`{"message": "all is well"}`), metav1.PatchOptions{})
			return err
		}},
		{what: "events: the kubelet's is taken over", as: withoutRBAC, policy: "taintlet-events", says: "changes no Events but its own", try: func(ctx context.Context, _ *attempted, as kubernetes.Interface) error {
			_, err := as.CoreV1().Events("default").Patch(ctx, "of-kubelet", types.MergePatchType, []byte(`{"source": {"component": "taintlet"}}`), metav1.PatchOptions{})
			return err
		}},
		{what: "events: deleted", as: withoutRBAC, policy: "taintlet-events", says: "deletes no Events", try: func(ctx context.Context, _ *attempted, as kubernetes.Interface) error {
			return as.CoreV1().Events("default").Delete(ctx, "of-kubelet", metav1.DeleteOptions{})
		}},
		{what: "events.k8s.io: about another Node", as: withoutRBAC, policy: "taintlet-events", says: ownOnly, try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			_, err := as.EventsV1().Events("default").Create(ctx, &eventsv1.Event{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "try-"}, EventTime: metav1.NowMicro(), Type: corev1.EventTypeNormal,
				Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: s.other}, Reason: "Try", Action: "Try",
				ReportingController: "taintlet", ReportingInstance: "try",
			}, metav1.CreateOptions{})
			return err
		}},
	}
}

func leaseAttempts() []attempt {
	update := func(what, says, name string, change func(*attempted, *coordinationv1.Lease)) attempt {
		return attempt{what: "leases: " + what, policy: "taintlet-leases", says: says, try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			lease, err := as.CoordinationV1().Leases(bed.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			change(s, lease)
			_, err = as.CoordinationV1().Leases(bed.Namespace).Update(ctx, lease, metav1.UpdateOptions{})
			return err
		}}
	}
	const holder, names = "for its own Node only", "of its own namespace only"
	const slot = "taintlet-evict-1" // held by the other Node
	elsewhere := func(a attempt) attempt {
		a.as = withoutRBAC
		return a
	}
	return []attempt{
		update("held for another Node", holder, "taintlet-evict-0", func(s *attempted, l *coordinationv1.Lease) { l.Spec.HolderIdentity = &s.other }),
		update("another's is released", holder, slot, func(_ *attempted, l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil }),
		update("another's is renewed", holder, slot, func(_ *attempted, l *coordinationv1.Lease) { l.Spec.RenewTime = &metav1.MicroTime{} }),
		update("the duration changes", "holder and times of a Lease only", "taintlet-evict-0", func(s *attempted, l *coordinationv1.Lease) {
			seconds := int32(3600)
			l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &s.own, &seconds
		}),
		update("a label is added", "no metadata of a Lease", "taintlet-evict-0", func(s *attempted, l *coordinationv1.Lease) {
			l.Spec.HolderIdentity, l.Labels["zone"] = &s.own, "b"
		}),
		elsewhere(update("another Lease of the namespace", names, "another", func(s *attempted, l *coordinationv1.Lease) { l.Spec.HolderIdentity = &s.own })),
		{what: "leases: the kubelet's", as: withoutRBAC, policy: "taintlet-leases", says: names, try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			_, err := as.CoordinationV1().Leases(corev1.NamespaceNodeLease).Patch(ctx, s.own, types.MergePatchType,
				[]byte(`{"spec": {"renewTime": null}}`), metav1.PatchOptions{})
			return err
		}},
		{what: "leases: created", as: withoutRBAC, policy: "taintlet-leases", says: "neither creates nor deletes", try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			_, err := as.CoordinationV1().Leases(bed.Namespace).Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "taintlet-evict-2"}}, metav1.CreateOptions{})
			return err
		}},
		{what: "leases: deleted", as: withoutRBAC, policy: "taintlet-leases", says: "neither creates nor deletes", try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			return as.CoordinationV1().Leases(bed.Namespace).Delete(ctx, slot, metav1.DeleteOptions{})
		}},
	}
}

// Whatever a stolen token, or an agent gone wrong, tries beyond what it is
// there for is denied, and nothing of it is left.
func TestWhatIsDenied(t *testing.T) {
	c := denying.Require(t)
	s := setScene(t, c)
	before := c.GetNode(t, s.own)
	all := slices.Concat(
		identityAttempts(), taintAttempts(), metadataAttempts(), conditionAttempts(), verbAttempts(), eventAttempts(), leaseAttempts(),
		conditionBounds(), annotationBounds(), duplicates(), managerAttempts(), eventBoundAttempts(), leaseBoundAttempts(), cleanerAttempts())
	for _, a := range all {
		a.isDenied(t, s)
	}
	t.Logf("%d attempts", len(all))
	after := c.GetNode(t, s.own)
	for _, node := range []*corev1.Node{before, after} {
		node.ResourceVersion = ""
		for i := range node.ManagedFields {
			node.ManagedFields[i].Time = nil // the kubelet's moves with its heartbeats
		}
	}
	if !reflect.DeepEqual(before, after) {
		t.Errorf("the Node is not as it was\nbefore %+v\nafter  %+v", before, after)
	}
}

// isDenied makes the attempt, and reports whether its policy denies it with its message.
func (a attempt) isDenied(t *testing.T, s *attempted) bool {
	t.Helper()
	as := s.agent
	if a.as != nil {
		as = a.as(s)
	}
	err := a.try(t.Context(), s, as)
	isDenied := bed.DeniedBy(err, a.policy) && strings.Contains(err.Error(), a.says)
	if !isDenied {
		t.Errorf("%s: not denied by %s with %q: %.500v", a.what, a.policy, a.says, err)
	}
	return isDenied
}

// cleanerAttempts are those of the account that cleans up every hour: it sets
// nothing, and removes nothing of others.
func cleanerAttempts() []attempt {
	const sizes, conditionSizes = "and a cleanup sets neither", "and a cleanup sets none"
	all := []attempt{
		node("a record is set", sizes, `{"metadata": {"annotations": {"taintlet.dev/record": "x"}}}`),
		node("a key is held", sizes, `{"metadata": {"annotations": {"taintlet.dev/held": "node.kubernetes.io/memory-pressure"}}}`),
		status("a record is set", sizes, `{"metadata": {"annotations": {"taintlet.dev/record": "x"}}}`),
		status("an own condition is set", conditionSizes, `{"status": {"conditions": [{"type": "HostMemoryPressure", "status": "False"}]}}`),
		{what: "nodes: a taint of a rule is set", policy: "taintlet-nodes", says: "no rule asks for node.kubernetes.io/memory-pressure:NoSchedule", try: func(ctx context.Context, s *attempted, as kubernetes.Interface) error {
			return bed.PatchNode(ctx, as, s.own, types.JSONPatchType, `[{"op": "add", "path": "/spec/taints/-", "value": {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}}]`)
		}},
	}
	for _, a := range slices.Concat(taintAttempts(), metadataAttempts(), conditionAttempts(), verbAttempts(), forgeries()) {
		if a.as == nil || a.policy == "taintlet-nodes" {
			all = append(all, a)
		}
	}
	for i := range all {
		all[i].what = "cleanup: " + all[i].what
		all[i].as = func(s *attempted) kubernetes.Interface { return s.cleaner }
	}
	return all
}
