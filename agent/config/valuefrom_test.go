package config_test

import (
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/config"
)

func TestValueFrom(t *testing.T) {
	header := "apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\n"
	rule := func(level, taint string) string {
		return "rules:\n- {condition: MemoryPressure, level: " + level + ", taint: {" + taint + "}}\n"
	}
	good, err := config.HostSchema().Decode([]byte(header + rule("Degraded", "key: example.com/a, valueFrom: severity, effect: PreferNoSchedule")))
	if err != nil || good.Policy().Rules[1].Taint.Value != "75" {
		t.Fatal(err)
	}
	if changes := config.Changes(config.Default(), good); !strings.Contains(changes, "example.com/a=severity:PreferNoSchedule") {
		t.Error(changes)
	}
	for text, want := range map[string]string{
		rule("Degraded", "key: example.com/a, valueFrom: level, effect: NoSchedule"):                         "rules[0].taint.valueFrom: Unsupported value: \"level\": supported values: \"severity\"",
		rule("Degraded", "key: example.com/a, value: x, valueFrom: severity, effect: NoSchedule"):            "rules[0].taint.valueFrom: Forbidden: the taint has a value already",
		rule("Degraded", "key: node.kubernetes.io/memory-pressure, valueFrom: severity, effect: NoSchedule"): "rules[0].taint.valueFrom: Forbidden: needs a key of your own",
		rule("Degraded", "key: node.kubernetes.io/x, valueFrom: severity, effect: PreferNoSchedule"):         "rules[0].taint.valueFrom: Forbidden: needs a key of your own",
		"eviction: {slots: 1}\n" + rule("Critical", "key: a, valueFrom: severity, effect: NoExecute"):        "rules[0].taint.valueFrom: Forbidden: NoExecute would evict pods when the value rises",
		rule("Degraded", "valueFrom: severity, effect: None"):                                                "rules[0].taint: Forbidden: the effect None asks for no taint",
	} {
		if _, err := config.HostSchema().Decode([]byte(header + text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
