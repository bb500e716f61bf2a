package apiserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// After a request without an answer the next ones share another connection, and no request
// is made on one that has failed.
func TestSpareConnections(t *testing.T) {
	server := &deafServer{}
	client := server.client(t)
	for _, deaf := range []bool{false, true, false, false, false, true, false, false} {
		server.deaf.Store(deaf)
		patience := time.Minute
		if deaf {
			patience = time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := client.GetNode(ctx, "a")
		cancel()
		if (err != nil) != deaf {
			t.Fatalf("answered: %t, got %v", !deaf, err)
		}
	}
	want := []int{2, 4, 2} // the kept one, and two spare ones
	if got := server.requests(); !slices.Equal(got, want) {
		t.Errorf("requests on each connection: %d, want %d", got, want)
	}
}

// deafServer is an API server that answers or not. It counts the requests on each
// connection.
type deafServer struct {
	deaf atomic.Bool

	mu      sync.Mutex
	on      map[string]int
	opened  []string
	release chan struct{}
}

// client returns a client of the server, which ends with the test.
func (s *deafServer) client(t *testing.T) *Client {
	t.Helper()
	s.on, s.release = map[string]int{}, make(chan struct{})
	server := httptest.NewUnstartedServer(s)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(s.release) })
	client, err := NewClient(&rest.Config{Host: server.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, "a")
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// ServeHTTP answers with a Node, or holds the request for as long as its client waits.
func (s *deafServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.on[r.RemoteAddr] == 0 {
		s.opened = append(s.opened, r.RemoteAddr)
	}
	s.on[r.RemoteAddr]++
	s.mu.Unlock()
	if s.deaf.Load() {
		select {
		case <-r.Context().Done():
		case <-s.release:
		}
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write([]byte(`{"kind":"Node","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"}}`)) //nolint:errcheck // the client sees it
}

// requests is how many came on each connection, in the order in which they were opened.
func (s *deafServer) requests() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var requests []int
	for _, address := range s.opened {
		requests = append(requests, s.on[address])
	}
	return requests
}
