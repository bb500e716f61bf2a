package words

import (
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/config"
)

// A condition without a taint is named, and one that has its taint is not.
func TestRulesNameConditionsWithoutATaint(t *testing.T) {
	const header = "apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\n"
	for text, want := range map[string]string{
		"":            "",
		"rules: []\n": "No rule: no taint is ever set.",
		"rules:\n- {condition: PIDPressure, level: Degraded, taint: {effect: None}}\n": "WARNING: PIDPressure has no rule for Degraded: no taint is ever set for it.",
	} {
		cfg, err := config.HostSchema().Decode([]byte(header + text))
		if err != nil {
			t.Fatal(err)
		}
		var warnings []string
		for _, line := range Rules(cfg) {
			if !strings.Contains(line, " asks for ") {
				warnings = append(warnings, line)
			}
		}
		if got := strings.Join(warnings, "\n"); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
