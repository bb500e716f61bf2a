package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/config"
)

// A rule with a severity gives the taint of another rule a value, for the same reasons, and
// replaces no default rule.
func TestSeverityGivesAValue(t *testing.T) {
	const base = "{condition: DiskPressure, level: Degraded, reasons: [SpaceLow], taint: {key: example.com/a, value: \"50\", effect: NoSchedule}, clear: manual}"
	rule := func(level, more, taint string) string {
		return "\n- {condition: DiskPressure, level: " + level + ", " + more + ", taint: {" + taint + "}}"
	}
	at75 := rule("Degraded", "severity: 75", "key: example.com/a, value: \"75\", effect: NoSchedule")
	good, err := config.HostSchema().Decode([]byte(header + "rules:" + at75 + "\n- " + base + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range good.Policy().Rules[:3] {
		got = append(got, fmt.Sprintln(r.Severity, r.Reasons, r.Clear, r.Taint.Pair().With(r.Taint.Value)))
	}
	want := []string{"75 [SpaceLow] manual example.com/a=75:NoSchedule\n", "0 [SpaceLow] manual example.com/a=50:NoSchedule\n"}
	if !slices.Equal(got[:2], want) || len(good.Policy().Rules) != 6 {
		t.Errorf("%q, want %q and the default rules", got, want)
	}
	if changes := config.Changes(config.Default(), good); !strings.Contains(changes, "rules[DiskPressure Degraded 75] unset → example.com/a=75:NoSchedule") {
		t.Error(changes)
	}
	own := "keys: Own\nrules:" + strings.ReplaceAll(at75, "example.com/a", "taintlet.dev/disk-pressure")
	if _, err := config.HostSchema().Decode([]byte(header + own)); err != nil {
		t.Errorf("the value of a default rule's taint: %v", err)
	}
	for text, want := range map[string]string{
		at75:                        "rules[0].severity: Invalid value: 75: changes the value of a taint; a rule for DiskPressure Degraded without severity must ask for example.com/a:NoSchedule",
		"\n- " + base + at75 + at75: "rules[1].taint: Invalid value: \"example.com/a:NoSchedule\": the rule for DiskPressure Degraded asks for it too",
		rule("Degraded", "severity: 50", "key: example.com/a, effect: NoSchedule"):                                           "rules[0].severity: Invalid value: 50: must be 51 to 100",
		rule("Degraded", "severity: 101", "key: example.com/a, effect: NoSchedule"):                                          "rules[0].severity: Invalid value: 101: must be 51 to 100",
		rule("Degraded", "severity: 75, reasons: [SpaceLow]", "key: example.com/a, effect: NoSchedule"):                      "rules[0].severity: Forbidden: the rule without severity has the reasons",
		rule("Degraded", "severity: 75, clear: manual", "key: example.com/a, effect: NoSchedule"):                            "rules[0].severity: Forbidden: the rule without severity has the reasons",
		rule("Degraded", "severity: 75", "key: node.kubernetes.io/disk-pressure, value: x, effect: NoSchedule"):              "rules[0].severity: Forbidden: needs a key of your own",
		rule("Degraded", "severity: 75", "effect: None"):                                                                     "rules[0].taint: Forbidden: the effect None",
		"\n- " + base + rule("Critical", "severity: 75", "key: example.com/a, effect: NoExecute") + "\neviction: {slots: 1}": "rules[1].severity: Forbidden: goes with level Degraded only",
	} {
		if _, err := config.HostSchema().Decode([]byte(header + "rules:" + text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}
