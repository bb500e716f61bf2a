package apiserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/taints/apiserver"
)

// watched runs the watch of the Node own against a server that answers each watch with
// these events and then ends it, until the context ends. It sends what is told of the
// Node, and counts the requests.
func watched(ctx context.Context, t *testing.T, events ...map[string]any) (nodes <-chan *taints.Node, requests *atomic.Int64) {
	t.Helper()
	requests = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Header().Set("Content-Type", "application/json")
		for _, event := range events {
			if err := json.NewEncoder(w).Encode(event); err != nil {
				t.Error(err)
			}
		}
	}))
	t.Cleanup(server.Close)
	client, err := apiserver.NewClient(&rest.Config{Host: server.URL}, "own")
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan *taints.Node)
	go func() {
		defer close(told)
		_ = client.Watch(ctx, told) // ends with the context
	}()
	return told, requests
}

func nodeNamed(name string) corev1.Node {
	return corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "5"}}
}

// However an API server ends a watch, it is asked again at a pace that does it no harm.
func TestAWatchThatEndsAtOnceIsPaced(t *testing.T) {
	t.Parallel()
	const long = 3 * time.Second
	expired := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone}
	for name, last := range map[string]map[string]any{
		"expired":          event("ERROR", expired),
		"after an event":   event("MODIFIED", nodeNamed("own")),
		"after a bookmark": event("BOOKMARK", nodeNamed("own")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), long)
			defer cancel()
			nodes, requests := watched(ctx, t, last)
			for range nodes {
			}
			// Four at once, and one each second; one more where a second ends with the test.
			if count := requests.Load(); count < 2 || count > 8 {
				t.Errorf("%d requests in %s", count, long)
			}
		})
	}
}

// What is told of another Node is not taken for the own one: neither a version of it
// nor its end.
func TestAForeignNodeInTheWatchIsNotOurs(t *testing.T) {
	t.Parallel()
	ended := nodeNamed("")
	ended.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	for _, first := range []string{"own", "other"} {
		for _, foreign := range []string{"ADDED", "MODIFIED", "DELETED"} {
			t.Run(foreign+" after "+first, func(t *testing.T) {
				t.Parallel()
				newer := nodeNamed("own")
				newer.ResourceVersion = "7"
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				nodes, _ := watched(ctx, t,
					event("ADDED", nodeNamed(first)), event("ADDED", nodeNamed("another")), event("BOOKMARK", ended),
					event(foreign, nodeNamed("other")), event("MODIFIED", newer))
				if node := <-nodes; (first == "own") != (node != nil) || node != nil && node.ResourceVersion != "5" {
					t.Errorf("first, told of %+v", node)
				}
				if node := <-nodes; node == nil || node.Name != "own" || node.ResourceVersion != "7" {
					t.Errorf("then told of %+v", node)
				}
				cancel()
				for range nodes {
				}
			})
		}
	}
}

func event(kind string, object any) map[string]any {
	return map[string]any{"type": kind, "object": object}
}
