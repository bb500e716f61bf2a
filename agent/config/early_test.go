package config_test

import (
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// An early taint has a key of ours, and is ours also where it is not asked for any more.
func TestEarlyTaints(t *testing.T) {
	cfg, err := config.HostSchema().Decode([]byte(header + "keyPrefix: example.com\nmemory: {earlyPercent: 10}\npid: {earlyPercent: 75}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	for _, rule := range cfg.Policy().Rules {
		if rule.Level == probes.OK {
			asked = append(asked, rule.Taint.Pair().String())
		}
	}
	if got, want := strings.Join(asked, " "), "example.com/memory-pressure-early:PreferNoSchedule example.com/pid-pressure-early:PreferNoSchedule"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for pair, want := range map[taints.Pair]bool{
		{Key: "example.com/memory-pressure-early", Effect: taints.PreferNoSchedule}:        true,
		{Key: "example.com/disk-pressure-early", Effect: taints.PreferNoSchedule}:          true, // of an earlier file
		{Key: "taintlet.dev/disk-pressure-early", Effect: taints.PreferNoSchedule}:         true,
		{Key: "example.com/memory-pressure-early", Effect: taints.NoSchedule}:              false,
		{Key: "example.com/network-unavailable-early", Effect: taints.PreferNoSchedule}:    false,
		{Key: "node.kubernetes.io/memory-pressure-early", Effect: taints.PreferNoSchedule}: false,
	} {
		if got := cfg.Policy().Produces(pair); got != want {
			t.Errorf("%s: %t", pair, got)
		}
	}
	for text, want := range map[string]string{
		"memory: {earlyPercent: 5}\n":                          "memory.earlyPercent: Forbidden: must be reached before availablePercent",
		"disk: {earlyPercent: 81}\n":                           "disk.earlyPercent: Invalid value: 81: must be 0 to 80",
		"pid: {earlyPercent: 85}\n":                            "pid.earlyPercent: Forbidden: must be reached before usedPercent",
		"network: {earlyPercent: 5}\n":                         "network.earlyPercent: Forbidden: unknown field",
		"startup: {taint: taintlet.dev/disk-pressure-early}\n": "startup.taint: Forbidden: taintlet.dev/disk-pressure-early is a key of a rule",
		"memory: {earlyPercent: 10}\nrules:\n- {condition: PIDPressure, level: Degraded, taint: {key: taintlet.dev/memory-pressure-early, effect: PreferNoSchedule}}\n": "rules[0].taint: Forbidden: taintlet.dev/memory-pressure-early:PreferNoSchedule is an early taint",
	} {
		if _, err := config.HostSchema().Decode([]byte(header + text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
