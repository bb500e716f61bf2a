package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/config"
)

// The list of a file replaces the default, and an empty one switches maintenance off.
func TestMaintenanceConditions(t *testing.T) {
	header := "apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\n"
	many := make([]string, 17)
	for i := range many {
		many[i] = fmt.Sprint("example.com/Maintenance", i)
	}
	for _, test := range []struct {
		text string
		want []string
	}{
		{"", []string{"DrainInProgress", "Drained", "MaintenanceInProgress", "GracefulNodeShutdownInProgress"}},
		{"maintenance: {}\n", []string{"DrainInProgress", "Drained", "MaintenanceInProgress", "GracefulNodeShutdownInProgress"}},
		{"maintenance: {conditions: []}\n", nil},
		{"maintenance: {conditions: [example.com/Maintenance]}\n", []string{"example.com/Maintenance"}},
		{"maintenance: {conditions: [" + strings.Join(many[:16], ", ") + "]}\n", many[:16]},
	} {
		cfg, err := config.HostSchema().Decode([]byte(header + test.text))
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if got := cfg.Policy().Maintenance; !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.text, got, test.want)
		}
	}
	for list, want := range map[string]string{
		"Ready":                            "maintenance.conditions[0]: Forbidden: Ready is True on every healthy Node",
		"DrainInProgress, HostPIDPressure": "maintenance.conditions[1]: Forbidden: HostPIDPressure is a condition of taintlet's own",
		"HostRepairNeeded":                 "maintenance.conditions[0]: Forbidden: HostRepairNeeded",
		"Drained, Drained":                 `maintenance.conditions[1]: Duplicate value: "Drained"`,
		"no space":                         `maintenance.conditions[0]: Invalid value: "no space"`,
		strings.Join(many, ", "):           "maintenance.conditions: Too many: 17: must have at most 16 items",
	} {
		_, err := config.HostSchema().Decode([]byte(header + "maintenance: {conditions: [" + list + "]}\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", list, err, want)
		}
	}
}
