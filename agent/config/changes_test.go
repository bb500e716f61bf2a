package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/test/fixtures"
)

// The fields that differ are named by their paths, with both values.
func TestChanges(t *testing.T) {
	decode := func(text string) *config.Config {
		t.Helper()
		cfg, err := config.HostSchema().Decode([]byte(header + text))
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	for _, test := range []struct{ before, after, want string }{
		{"", "# a comment\n", "no field differs"},
		{"", "memory: {availablePercent: 6}\n", "memory.availablePercent 5 → 6"},
		{"", "debounce: {clearAfter: 1m}\ndisk: {debounce: {clearAfter: 3m}}\n", "debounce.clearAfter 2m0s → 1m0s, disk.debounce.clearAfter unset → 3m0s"},
		{"heartbeat: 2m\n", "disk: {paths: [/], writeProbe: {directory: /scratch}, debounce: {clearAfter: 1m}}\n",
			`disk.debounce.clearAfter unset → 1m0s, disk.paths ["/","/var/lib/kubelet","/var/lib/containerd"] → ["/"], disk.writeProbe.directory "" → /scratch, heartbeat 2m0s → 5m0s`},
		{"", "rules:\n- {condition: PIDPressure, level: Degraded, taint: {effect: None}}\n- {condition: DiskPressure, level: Degraded, taint: {key: example.com/disk, value: \"9\", effect: NoSchedule}}\n",
			"rules[DiskPressure Degraded] node.kubernetes.io/disk-pressure:NoSchedule → example.com/disk=9:NoSchedule, rules[PIDPressure Degraded] node.kubernetes.io/pid-pressure:NoSchedule → unset"},
		{"", "eviction: {slots: 2}\nrules:\n- {condition: PIDPressure, level: Critical, taint: {key: a, effect: NoExecute}}\n", "eviction.slots 0 → 2, rules[PIDPressure Critical] unset → a:NoExecute"},
	} {
		if got := config.Changes(decode(test.before), decode(test.after)); got != test.want {
			t.Errorf("%q and %q:\n%s\nwant\n%s", test.before, test.after, got, test.want)
		}
	}
}

// However much a configuration changes, what is said of it stays short.
func TestChangesAreBounded(t *testing.T) {
	after := config.Default()
	for _, condition := range after.Conditions {
		common := condition.Common()
		common.Period.Duration++
		common.Debounce.Samples++
		common.Debounce.ClearAfter.Duration++
	}
	disk := fixtures.Section[*config.Disk](after)
	disk.Paths = nil
	for i := range 32 {
		disk.Paths = append(disk.Paths, fmt.Sprintf("/%d%s", i, strings.Repeat("é", 2000)))
	}
	if got := config.Changes(config.Default(), after); len(got) > 1500 || !strings.HasSuffix(got, " and 5 more") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
