package faults

import (
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// stale answers lists and watches of the Node as a second API server does that has seen no version
// after this one. Its watches tell of nothing newer.
func stale(name string, versions []*corev1.Node) *fault {
	last := versions[len(versions)-1]
	return &fault{name: name, instead: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			for _, node := range after(versions, r.URL.Query().Get("resourceVersion")) {
				write(w, watchEvent("MODIFIED", node))
			}
			http.NewResponseController(w).Flush() //nolint:errcheck // the agent may hang up
			hold(w, r)
			return
		}
		write(w, corev1.NodeList{
			TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"},
			ListMeta: metav1.ListMeta{ResourceVersion: last.ResourceVersion}, Items: []corev1.Node{*last},
		})
	}}
}

func typed(node *corev1.Node) *corev1.Node {
	node = node.DeepCopy()
	node.TypeMeta = metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}
	return node
}

// watchEvent is a line of a watch.
func watchEvent(kind string, node *corev1.Node) any {
	return map[string]any{"type": kind, "object": typed(node)}
}

// after returns the versions that are newer than that one.
func after(versions []*corev1.Node, version string) []*corev1.Node {
	return slices.DeleteFunc(slices.Clone(versions), func(node *corev1.Node) bool {
		order, err := resourceversion.CompareResourceVersion(node.ResourceVersion, version)
		return err == nil && order <= 0
	})
}

// watchFaults befall watches alone.
func watchFaults() []*fault {
	stream := func(w http.ResponseWriter, event any) {
		w.Header().Set("Content-Type", "application/json")
		write(w, event)
	}
	return []*fault{
		{name: "watch closed at once", instead: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusOK)
		}},
		{name: "too old resource version", instead: func(w http.ResponseWriter, _ *http.Request) {
			stream(w, map[string]any{"type": "ERROR", "object": metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
				Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old resource version",
			}})
		}},
		{name: "bookmarks only", instead: func(w http.ResponseWriter, r *http.Request) {
			bookmark := &corev1.Node{ObjectMeta: metav1.ObjectMeta{ResourceVersion: r.URL.Query().Get("resourceVersion")}}
			stream(w, watchEvent("BOOKMARK", bookmark))
			hold(w, r)
		}},
	}
}
