package bed

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/test/cluster"
)

// InstallRules installs what bounds agents, and no agents: account, permissions
// and policies, of the chart in a folder and for the values, in a namespace that is
// there. Slots come with evict.slots. Several releases stand side by side, as they
// cannot otherwise.
func InstallRules(ctx context.Context, t *testing.T, c *cluster.Cluster, folder, namespace string, values map[string]any) {
	t.Helper()
	args := []string{"--namespace", namespace, "-f", ValuesFile(t, values), "--show-only", "templates/rbac.yaml", "--show-only", "templates/admission.yaml"}
	policies := []string{"taintlet-nodes", "taintlet-events"}
	if values["evict"] != nil {
		args, policies = append(args, "--show-only", "templates/evict.yaml"), append(policies, "taintlet-leases")
	}
	text, err := TryRenderFolder(t, folder, args...)
	if err != nil {
		t.Fatal(err, text)
	}
	Apply(ctx, t, c, beside(t, text, namespace))
	for i := range policies {
		policies[i] += "-" + namespace
	}
	WaitInForce(ctx, t, c, namespace, policies...)
}

// beside adds the namespace to the names of what is outside of it, which the
// chart gives fixed names.
func beside(t *testing.T, manifest, namespace string) string {
	t.Helper()
	var renamed []string
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if object.GetNamespace() != namespace {
			object.SetName(object.GetName() + "-" + namespace)
			for _, reference := range [][]string{{"roleRef", "name"}, {"spec", "policyName"}} {
				if name, found, _ := unstructured.NestedString(object.Object, reference...); found {
					if err := unstructured.SetNestedField(object.Object, name+"-"+namespace, reference...); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		renamed = append(renamed, string(text))
	}
	return strings.Join(renamed, "---\n")
}
