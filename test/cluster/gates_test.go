package cluster

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// gateRow is a row of a table that begins with a feature gate and has its state.
var gateRow = regexp.MustCompile("(?m)^\\| `(\\w+)`[^|]*\\| (Alpha|Beta|GA|Deprecated), (on|off) \\|")

// The documentation tells the state of feature gates in Kubernetes 1.37. All components of
// Kubernetes have the same list, and each says in its metrics what holds. What the other cells
// say has tests of its own: TestKeepHoldsTaintsAgainstTheController here, in test/integration
// TestMaintenanceByACondition and TestSeverityIsTheValue, and in probes/network/ask
// TestRestartsOfADaemonAreNoFailure.
func TestFeatureGatesAreAsDocumented(t *testing.T) {
	SkipUnlessRequired(t)
	SkipBefore(t, "1.37", "feature gates as gates.md lists them")
	c := shared.Require(t)
	page, err := os.ReadFile("gates.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := gateRow.FindAllStringSubmatch(string(page), -1)
	if len(rows) < 9 {
		t.Errorf("the table has only %d feature gates", len(rows))
	}
	metrics, err := c.Client().Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		gate, stage, isOn := row[1], strings.ToUpper(row[2]), 0
		if row[3] == "on" {
			isOn = 1
		}
		if stage == "GA" {
			stage = ""
		}
		want := fmt.Sprintf("kubernetes_feature_enabled{name=%q,stage=%q} %d\n", gate, stage, isOn)
		if !strings.Contains(string(metrics), want) {
			got := regexp.MustCompile(`kubernetes_feature_enabled\{name="` + gate + `".*`).Find(metrics)
			t.Errorf("the table says of %s %s, %s; the API server %q", gate, row[2], row[3], got)
		}
	}
}
