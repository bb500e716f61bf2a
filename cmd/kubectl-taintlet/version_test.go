package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/taintlet/taintlet/taints/apiserver"
)

// The configuration of the ConfigMap is that of the Nodes whose record has its hash.
func TestWhereAConfigurationIsInForce(t *testing.T) {
	node := func(name, hash string) string {
		record := fmt.Sprintf(`{"version": 1, "revision": 1, "config": %q, "conditions": {}}`, hash)
		return fmt.Sprintf(`{"kind": "Node", "apiVersion": "v1", "metadata": {"name": %q, "annotations": {"taintlet.dev/record": %q}}}`, name, record)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := node("n1", "41ab")
		switch r.URL.Path {
		case "/api/v1/nodes/n2":
			answer = node("n2", "8198")
		case "/api/v1/nodes":
			answer = `{"kind": "NodeList", "apiVersion": "v1", "items": [` + node("n1", "41ab") + "," + node("n2", "8198") + "," + node("n3", "") + `]}`
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	client, err := apiserver.NewClient(&rest.Config{Host: server.URL}, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"": "41ab, in force on 1 of 2 Nodes", "n1": "41ab, in force on Node n1", "n2": "41ab. Node n2 still uses 8198, which only its agent knows",
	} {
		if got, err := inForce(t.Context(), client, "41ab", strings.Fields(name)); err != nil || got != ", configuration "+want {
			t.Errorf("%q: %v, %s", name, err, got)
		}
	}
}

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
	var out strings.Builder
	err := versionsOf(t.Context(), &rest.Config{Host: server.URL}, "taintlet-system", &out)
	if want := "agents 0.1.0 (2), 0.2.0 (1)\nKubernetes v1.36.3\n"; err != nil || out.String() != want {
		t.Errorf("%v, %q, want %q", err, out.String(), want)
	}
}
