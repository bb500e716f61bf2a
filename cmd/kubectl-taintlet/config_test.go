package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/config"
)

// pools is a configuration with an override for a pool.
const pools = `apiVersion: taintlet.dev/v1alpha1
kind: TaintletConfiguration
memory: {availablePercent: 6, period: 3s}
overrides:
- nodeSelector: {example.com/pool: web}
- nodeSelector: {example.com/pool: batch}
  memory: {availablePercent: 3, period: null}
`

// config shows what is in force on a Node: the file with the override that applies to the Node,
// and which one that is. The record of the Node has the hash of the file.
func TestConfigInForce(t *testing.T) {
	newest := config.HashOf([]byte(pools))
	node := func(name, hash, pool string) string {
		record := fmt.Sprintf(`{"version": 1, "revision": 1, "config": %q, "conditions": {}}`, hash)
		return fmt.Sprintf(`{"kind": "Node", "apiVersion": "v1", "metadata": {"name": %q, "labels": {"example.com/pool": %q}, "annotations": {"taintlet.dev/mode": %q, "taintlet.dev/record": %q}}}`, name, pool, map[string]string{"n3": "Observe"}[name], record)
	}
	n1, n2, n3 := node("n1", newest, "batch"), node("n2", "8198", "other"), node("n3", "", "web")
	kubeconfig := kubeconfigOf(t, serving(t, map[string]string{
		"/api/v1/nodes/n1": n1, "/api/v1/nodes/n2": n2, "/api/v1/nodes/n3": n3, "/api/v1/nodes": fmt.Sprintf(`{"kind": "NodeList", "apiVersion": "v1", "items": [%s, %s, %s]}`, n1, n2, n3),
		configMap: configured(pools),
	}))
	for name, want := range map[string][]string{
		"":   {", in force on 1 of 2 Nodes:\n", "\n  availablePercent: 6\n", "\n  period: 3s\n"},
		"n1": {" with overrides[1] {example.com/pool=batch}, in force on Node n1:\n", "\n  availablePercent: 3\n", "\n  period: 4s\n", "\noverrides: []\n"},
		"n2": {". Node n2 still uses 8198, which only its agent knows:\n", "\n  availablePercent: 6\n"},
		"n3": {" with overrides[0] {example.com/pool=web}, in mode Observe by the annotation taintlet.dev/mode. No agent reports what is in force on Node n3:\n", "\n  availablePercent: 6\n"},
	} {
		code, out, stderr := program.Call(t, append([]string{"config", "--kubeconfig=" + kubeconfig}, strings.Fields(name)...)...)
		for _, part := range append(want, "# ConfigMap taintlet-system/taintlet, configuration "+newest) {
			if code != 0 || !strings.Contains(out, part) {
				t.Errorf("%q: exit code %d, %s, no %q in\n%s", name, code, stderr, part, out)
			}
		}
	}
}

const configMap = "/api/v1/namespaces/taintlet-system/configmaps/taintlet"

func configured(file string) string {
	return fmt.Sprintf(`{"kind": "ConfigMap", "apiVersion": "v1", "data": {"config.yaml": %q}}`, file)
}

// serving is the address of an API server that has these objects, by their paths.
func serving(t *testing.T, objects map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(objects[r.URL.Path]))
	}))
	t.Cleanup(server.Close)
	return server.URL
}
