package deploy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/test/bed"
)

// Every recipe of the cookbook, and every step of the first week, passes the chart's schema, and
// the agent accepts the configuration that the chart makes of it and sets no pair that the
// policies do not let it set.
func TestRecipes(t *testing.T) {
	for _, page := range []string{"cookbook.md", "first-week.md"} {
		recipes := bed.Blocks(t, "docs/"+page, "yaml")
		if len(recipes) < 3 {
			t.Errorf("%s: %d recipes", page, len(recipes))
		}
		for i, recipe := range recipes {
			values, err := yaml.YAMLToJSONStrict([]byte(recipe))
			if err != nil {
				t.Fatalf("%s: %v in\n%s", page, err, recipe)
			}
			t.Run(fmt.Sprint(page, " ", i), func(t *testing.T) {
				manifest := bed.Render(t, "-f", bed.ValuesFile(t, json.RawMessage(values)))
				policy := configOf(t, documentOf(t, manifest, "kind: ConfigMap\n")).Policy()
				wanted, _ := pairsOfPolicy(t, manifest)
				for _, rule := range policy.Rules {
					if pair := rule.Taint.Pair().String(); !strings.Contains(" "+strings.Join(wanted, " ")+" ", " "+pair+" ") {
						t.Errorf("the policies do not have %s", pair)
					}
				}
			})
		}
	}
}

// documentOf returns the document of a manifest that contains a line.
func documentOf(t *testing.T, manifest, line string) string {
	t.Helper()
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		if strings.Contains(document, "\n"+line) {
			return document
		}
	}
	t.Fatalf("no %s in\n%s", line, manifest)
	return ""
}
