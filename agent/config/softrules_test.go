package config_test

import (
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/taints"
)

func TestSoftRules(t *testing.T) {
	header := "apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\n"
	cfg, err := config.HostSchema().Decode([]byte(header + `softRules:
- {condition: MemoryPressure, severity: 1, taint: {key: example.com/memory, value: early, effect: PreferNoSchedule}}
- {condition: PIDPressure, severity: 49, taint: {key: node.kubernetes.io/pid-pressure, effect: PreferNoSchedule}}
`))
	if err != nil {
		t.Fatal(err)
	}
	policy := cfg.Policy()
	for pair, want := range map[taints.Pair]bool{
		{Key: "example.com/memory", Effect: taints.PreferNoSchedule}:              true,
		{Key: "example.com/memory", Effect: taints.NoSchedule}:                    false,
		{Key: "taintlet.dev/memory", Effect: taints.PreferNoSchedule}:             false, // no stand-in
		{Key: "node.kubernetes.io/pid-pressure", Effect: taints.PreferNoSchedule}: true,
	} {
		if got := policy.Produces(pair); got != want {
			t.Errorf("%s: %t", pair, got)
		}
	}
	if copied := cfg.Clone(); len(copied.SoftRules) != 2 || &copied.SoftRules[0] == &cfg.SoftRules[0] {
		t.Error("a clone shares the soft rules")
	}
	rule := func(condition, severity, key, effect string) string {
		return "- {condition: " + condition + ", severity: " + severity + ", taint: {key: " + key + ", effect: " + effect + "}}\n"
	}
	for text, want := range map[string]string{
		rule("CPUPressure", "30", "a", "NoSchedule"):                                                 "softRules[0].condition: Unsupported value: \"CPUPressure\"",
		rule("PIDPressure", "0", "a", "NoSchedule"):                                                  "softRules[0].severity: Invalid value: 0: must be 1 to 49",
		rule("PIDPressure", "50", "a", "NoSchedule"):                                                 "softRules[0].severity: Invalid value: 50",
		rule("PIDPressure", "30", "a", "NoExecute"):                                                  "softRules[0].taint.effect: Unsupported value: \"NoExecute\": supported values: \"PreferNoSchedule\", \"NoSchedule\"",
		rule("PIDPressure", "30", "a", "None"):                                                       "softRules[0].taint.effect: Unsupported value: \"None\"",
		rule("PIDPressure", "30", "node.kubernetes.io/not-ready", "NoSchedule"):                      "softRules[0].taint.key: Forbidden: node.kubernetes.io/not-ready belongs to the control plane",
		rule("PIDPressure", "30", "node.kubernetes.io/pid-pressure", "NoSchedule"):                   "softRules[0].taint: Forbidden: node.kubernetes.io/pid-pressure:NoSchedule is a pair of a rule or of a stand-in",
		rule("PIDPressure", "30", "taintlet.dev/disk-pressure", "NoSchedule"):                        "softRules[0].taint: Forbidden: taintlet.dev/disk-pressure:NoSchedule is a pair of a rule or of a stand-in",
		rule("PIDPressure", "30", "a", "NoSchedule") + rule("PIDPressure", "40", "b", "NoSchedule"):  "softRules[1].condition: Duplicate value: \"PIDPressure\"",
		rule("PIDPressure", "30", "a", "NoSchedule") + rule("DiskPressure", "40", "a", "NoSchedule"): "softRules[1].taint: Duplicate value: \"a:NoSchedule\"",
	} {
		if _, err := config.HostSchema().Decode([]byte(header + "softRules:\n" + text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	startup := "startup: {taint: a}\nsoftRules:\n" + rule("PIDPressure", "30", "a", "PreferNoSchedule")
	if _, err := config.HostSchema().Decode([]byte(header + startup)); err == nil || !strings.Contains(err.Error(), "startup.taint: Forbidden: a is a key of a rule") {
		t.Error(err)
	}
}
