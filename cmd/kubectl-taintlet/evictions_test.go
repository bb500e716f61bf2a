package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
)

// Where no rule evicts, those are shown that could: one for each condition that becomes
// Critical, of whatever schema.
func TestEvictingRulesAreOfWhatBecomesCritical(t *testing.T) {
	schema := append(config.HostSchema(), config.Definition{
		Name: "Frost", Field: "frost", TaintKey: "example.com/frost", BecomesCritical: true, NewSection: config.HostSchema()[0].NewSection,
	})
	rules, _ := evictingRules(schema.Default())
	var got []probes.Condition
	for _, rule := range rules {
		if rule.Level != probes.Critical {
			t.Errorf("%+v", rule)
		}
		got = append(got, rule.Condition)
	}
	if want := []probes.Condition{probes.MemoryPressure, probes.PIDPressure, "Frost"}; !slices.Equal(got, want) {
		t.Errorf("rules for %v, want %v", got, want)
	}
}

// evicting is a configuration in which one pool evicts, and another one does not.
const evicting = `apiVersion: taintlet.dev/v1alpha1
kind: TaintletConfiguration
eviction: {slots: 1}
rules: [{condition: MemoryPressure, level: Critical, taint: {key: example.com/tight, effect: NoExecute}}]
overrides:
- nodeSelector: {example.com/pool: db}
  rules: []
`

// The pods of a Node are counted and listed by the rules of the Node's override.
func TestEvictionsHaveTheRulesOfEachNode(t *testing.T) {
	node := func(name, pool string) string {
		return fmt.Sprintf(`{"kind": "Node", "apiVersion": "v1", "metadata": {"name": %q, "labels": {"example.com/pool": %q}}}`, name, pool)
	}
	kubeconfig := kubeconfigOf(t, serving(t, map[string]string{
		configMap: configured(evicting), "/api/v1/nodes/n1": node("n1", "db"), "/api/v1/nodes/n2": node("n2", "web"),
		"/api/v1/nodes": `{"kind": "NodeList", "apiVersion": "v1", "items": [` + node("n1", "db") + "," + node("n2", "web") + `]}`,
		"/api/v1/pods": `{"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "a"}, "spec": {"nodeName": "n1"}},
			{"metadata": {"name": "b"}, "spec": {"nodeName": "n2", "tolerations": [{"key": "example.com/tight", "operator": "Exists"}]}}]}`,
	}))
	for names, want := range map[string][]string{
		"": {`NODE +EVICTED NOW +LATER +KEPT +EVICTION +TAINT\nn1 with overrides\[0\] {example.com/pool=db} +1 +0 +0 +off +node.kubernetes.io/memory-pressure:NoExecute\n`,
			`\nn2 +0 +0 +1 +on +example.com/tight:NoExecute\nEviction is off: no rule for level Critical`},
		"n1": {`\n\nNode n1 with overrides\[0\] {example.com/pool=db}, MemoryPressure Critical would set node.kubernetes.io/memory-pressure:NoExecute; of 1 pods:\n  1 evicted now\n    /a\n  0 evicted later\n`},
		"n2": {`\n\nNode n2, MemoryPressure Critical sets example.com/tight:NoExecute; of 1 pods:\n(.*\n)+  1 kept\n    /b\n\nAn eviction that`},
	} {
		code, out, stderr := program.Call(t, append([]string{"evictions", "--kubeconfig=" + kubeconfig}, strings.Fields(names)...)...)
		for _, part := range want {
			if code != 0 || !regexp.MustCompile(part).MatchString(out) {
				t.Errorf("%q: exit code %d, %s, no %q in\n%s", names, code, stderr, part, out)
			}
		}
	}
}
