package apiserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/taints"
)

// An answer that puts a request off for hours holds up neither a request nor the
// watch.
func TestNothingIsPutOffForLong(t *testing.T) {
	for _, said := range []string{"3600", "1000000000000000000000", "Fri, 31 Dec 2100 23:59:59 GMT"} {
		t.Run(said, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if requests.Add(1) < 3 {
					w.Header().Set("Retry-After", said)
					w.WriteHeader(http.StatusTooManyRequests)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				answer := `{"kind":"Node","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"}}`
				if r.URL.Query().Get("watch") != "" {
					answer = `{"type":"ADDED","object":` + answer + `}` + "\n" +
						`{"type":"BOOKMARK","object":{"kind":"Node","apiVersion":"v1","metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
				}
				w.Write([]byte(answer)) //nolint:errcheck // the client sees it
			}))
			client, err := NewClient(&rest.Config{Host: server.URL, QPS: -1}, "a")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer server.Close()
			defer server.CloseClientConnections()
			defer cancel()
			if _, err := client.GetNode(ctx, "a"); err != nil {
				t.Error(err)
			}
			requests.Store(0)
			nodes := make(chan *taints.Node)
			go client.Watch(ctx, nodes) //nolint:errcheck // that of the context
			select {
			case <-nodes:
			case <-ctx.Done():
				t.Error("no Node by the watch")
			}
		})
	}
}

// A request that the API server puts off is its caller's to try again.
func TestUnretriedAsksOnce(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	client, err := NewClient(&rest.Config{Host: server.URL, QPS: -1}, "a")
	if err != nil {
		t.Fatal(err)
	}
	client = client.Unretried()
	for name, ask := range map[string]func() error{
		"taints": func() error {
			_, err := client.Apply(t.Context(), &taints.Node{}, taints.Desired{Taints: []taints.Taint{{Key: "a", Effect: taints.NoSchedule}}})
			return err
		},
		"Node":             func() error { _, err := client.GetNode(t.Context(), "a"); return err },
		"admission policy": func() error { _, _, err := client.KeepPolicy(t.Context(), true); return err },
	} {
		requests.Store(0)
		if err := ask(); !apierrors.IsTooManyRequests(err) || requests.Load() != 1 {
			t.Errorf("%s: %d requests, then %v, want 1, then that there are too many", name, requests.Load(), err)
		}
	}
}
