package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
)

// The versions of a cluster are those of its agents, counted, and that of its API server.
func TestVersionsOfACluster(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		pod := func(tag string) string {
			return `{"spec": {"containers": [{"name": "taintlet", "image": "taintlet/taintlet:` + tag + `"}]}}`
		}
		answer := `{"kind": "PodList", "apiVersion": "v1", "items": [` + strings.Join([]string{pod("0.1.0"), pod("0.2.0"), pod("0.1.0")}, ",") + `]}`
		if r.URL.Path == "/version" {
			answer = `{"major": "1", "minor": "36", "gitVersion": "v1.36.3"}`
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	client, err := installation.NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = versionsOf(t.Context(), client, "taintlet-system", &out)
	if want := "agents 2 of taintlet/taintlet:0.1.0, 1 of taintlet/taintlet:0.2.0\nKubernetes v1.36.3\n"; err != nil || out.String() != want {
		t.Errorf("%v, %q, want %q", err, out.String(), want)
	}
}
