package apiserver

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/taints"
)

// A proxy may answer in the API server's place. What is not the Node is no answer, and a redirect is
// not followed.
func TestAnswersOfAProxy(t *testing.T) {
	const node = `{"kind":"Node","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"}}`
	for name, refuse := range map[string]http.HandlerFunc{
		"nothing": func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte("{}")) //nolint:errcheck // the client sees it
		},
		"another Node": func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte(`{"kind":"Node","apiVersion":"v1","metadata":{"name":"b"}}`)) //nolint:errcheck // the client sees it
		},
		"a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) },
	} {
		t.Run(name, func(t *testing.T) {
			var followed atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.URL.Path == "/login" {
					followed.Add(1)
					w.Write([]byte(node)) //nolint:errcheck // the client sees it
					return
				}
				refuse(w, r)
			}))
			defer server.Close()
			client, err := NewClient(&rest.Config{Host: server.URL, QPS: -1}, "a")
			if err != nil {
				t.Fatal(err)
			}
			base := &taints.Node{Name: "a", ResourceVersion: "1"}
			desired := taints.Desired{Taints: []taints.Taint{{Key: "a", Effect: taints.NoSchedule}}}
			for range 2 { // on the kept connection and on a spare one
				if node, err := client.Apply(t.Context(), base, desired); err == nil || node != base {
					t.Errorf("patched: %v, %v", node, err)
				}
				if node, err := client.GetNode(t.Context(), "a"); err == nil {
					t.Errorf("read: %v", node)
				}
				if isPresent, _, err := client.KeepPolicy(t.Context(), true); err == nil {
					t.Errorf("the policy is there: %t", isPresent)
				}
				client.failedAt.Store(new(time.Now()))
			}
			if n := followed.Load(); n > 0 {
				t.Errorf("%d redirects were followed", n)
			}
		})
	}
}

// An eviction slot is held only if the answer says so.
func TestSlotWithoutAnAnswerIsNotHeld(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			w.Write([]byte(`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"taintlet-evict-0","resourceVersion":"1"}}`)) //nolint:errcheck // the client sees it
			return
		}
		w.Write([]byte(`{"metadata":{"name":"taintlet-evict-0"}}`)) //nolint:errcheck // the client sees it
	}))
	defer server.Close()
	client, err := NewClient(&rest.Config{Host: server.URL, QPS: -1}, "a")
	if err != nil {
		t.Fatal(err)
	}
	held, err := client.Slots("taintlet-system").Acquire(t.Context(), 1, time.Minute, func(taints.Pair) bool { return false })
	if held || err == nil {
		t.Errorf("held: %t, %v", held, err)
	}
}
