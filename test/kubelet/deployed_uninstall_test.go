package kubelet_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/cluster"
)

// isUninstalled does what `helm uninstall` does, while the Node is tainted.
func (d *deployed) isUninstalled(t *testing.T) {
	s, disk := follow(t, d.cluster), newDisk(t, d.kubelet)
	disk.takeSpace(fullPercent)
	s.until("taintlet holds the pair", held)

	foreground := metav1.DeletePropagationForeground
	sets := d.cluster.Client().AppsV1().DaemonSets(namespace)
	if err := sets.Delete(t.Context(), daemonSet, metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, "the end of the DaemonSet", func() error {
		_, err := sets.Get(t.Context(), daemonSet, metav1.GetOptions{})
		return isGone(err)
	})
	if node := d.cluster.GetNode(t, nodeName); !tainted(node) || !held(node) {
		t.Errorf("the taint went with the agent: %s", brief(node))
	}
	d.cleansUp(t) // on the only Node there is, whose taint is to be removed
	d.compareNode(t)
	d.remove(t, keepManifest, manifest)
	var left []object
	cluster.Eventually(t, "the end of all objects", func() error {
		left = slices.DeleteFunc(slices.Collect(maps.Keys(objects(t, d.cluster))), func(o object) bool { return d.objectsBefore[o] })
		if len(left) > 0 {
			return fmt.Errorf("left are %v", left)
		}
		return nil
	})
	d.compareNode(t) // without any policy in force
}

// isGone is nil when the error says that what was asked for does not exist.
func isGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(err, errors.New("it is there"))
}

// compareNode fails unless the Node is as it was before anything was installed.
func (d *deployed) compareNode(t *testing.T) {
	t.Helper()
	before, after := d.nodeBefore, d.cluster.GetNode(t, nodeName)
	if !taints.Equal(apiserver.NodeOf(before).Taints, apiserver.NodeOf(after).Taints) {
		t.Errorf("taints were %v, and are %v", before.Spec.Taints, after.Spec.Taints)
	}
	if !maps.Equal(before.Annotations, after.Annotations) {
		t.Errorf("annotations were %v, and are %v", before.Annotations, after.Annotations)
	}
	types := func(node *corev1.Node) (all []corev1.NodeConditionType) {
		for _, condition := range node.Status.Conditions {
			all = append(all, condition.Type)
		}
		slices.Sort(all)
		return all
	}
	if !slices.Equal(types(before), types(after)) {
		t.Errorf("conditions were %v, and are %v", types(before), types(after))
	}
}

// remove deletes what is in the manifests, as `kubectl delete -f` does.
func (d *deployed) remove(t *testing.T, manifests ...string) {
	t.Helper()
	client, err := dynamic.NewForConfig(d.cluster.Admin())
	if err != nil {
		t.Fatal(err)
	}
	present := objects(t, d.cluster)
	for _, manifest := range manifests {
		for _, wanted := range readManifest(t, manifest) {
			for found := range present {
				if found.kind != wanted.GroupVersionKind().GroupKind() || found.namespace != wanted.GetNamespace() || found.name != wanted.GetName() {
					continue
				}
				background := metav1.DeletePropagationBackground
				err := client.Resource(found.resource).Namespace(found.namespace).Delete(t.Context(), found.name, metav1.DeleteOptions{PropagationPolicy: &background})
				if err != nil {
					t.Errorf("delete %v: %v", found, err)
				}
			}
		}
	}
}

// nothingWasRefused reads in the audit log what the agent asked for.
func (d *deployed) nothingWasRefused(t *testing.T) {
	requests, err := d.cluster.Requests(bed.UserOf(namespace))
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]int{}
	for _, r := range requests {
		if strings.Contains(r.RequestURI, "dryRun=") {
			continue // dry runs are tokenIsNarrow's
		}
		asked[fmt.Sprintf("%d %s %s", r.ResponseStatus.Code, r.Verb, r.Resource())]++
		if code := r.ResponseStatus.Code; bed.IsRefusal(code, r.Resource()) {
			t.Errorf("refused: %s %s: %d %s", r.Verb, r.RequestURI, code, r.ResponseStatus.Message)
		}
	}
	t.Logf("asked, by answer: %v", asked)
	if asked["200 patch nodes"] == 0 || asked["200 patch nodes/status"] == 0 {
		t.Error("the audit log does not show what the agent wrote")
	}
}

// object is an object's name, of any kind.
type object struct {
	kind            schema.GroupKind
	resource        schema.GroupVersionResource
	namespace, name string
}

// objects lists all that the API server has, but for what comes and goes by
// itself: Events, and the kubelet's Lease.
func objects(t *testing.T, c *cluster.Cluster) map[object]bool {
	t.Helper()
	lists, err := discovery.ServerPreferredResources(c.Client().Discovery())
	if err != nil {
		t.Fatal(err)
	}
	quiet := c.Admin()
	quiet.WarningHandler = rest.NoWarnings{} // of resources that are deprecated
	client, err := dynamic.NewForConfig(quiet)
	if err != nil {
		t.Fatal(err)
	}
	found := map[object]bool{}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range list.APIResources {
			if kind.Kind == "Event" || !strings.Contains(strings.Join(kind.Verbs, ","), "list") {
				continue
			}
			resource := group.WithResource(kind.Name)
			items, err := client.Resource(resource).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("list %s: %v", resource, err)
			}
			for _, item := range items.Items {
				if item.GetNamespace() == corev1.NamespaceNodeLease {
					continue
				}
				found[object{item.GroupVersionKind().GroupKind(), resource, item.GetNamespace(), item.GetName()}] = true
			}
		}
	}
	return found
}

func readManifest(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := cluster.ReadManifest(path)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func convert(t *testing.T, from *unstructured.Unstructured, to any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, to); err != nil {
		t.Fatal(err)
	}
}
