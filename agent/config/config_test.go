package config_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/fixtures"
)

const header = "apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\n"

func TestDefaultIsValid(t *testing.T) {
	if errs := config.Default().Validate(); len(errs) > 0 {
		t.Fatal(errs)
	}
}

func TestDecodeKeepsDefaultsOfFieldsThatAreNotGiven(t *testing.T) {
	cfg, err := config.HostSchema().Decode([]byte(header + "memory:\n  availablePercent: 7\n  debounce:\n    clearAfter: 30s\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	memory, wantMemory := fixtures.Section[*config.Memory](cfg), fixtures.Section[*config.Memory](want)
	if memory.AvailablePercent != 7 || memory.Debounce.ClearAfter.Duration != 30*time.Second {
		t.Errorf("memory = %+v", memory)
	}
	if memory.Debounce.ClearFactor != wantMemory.Debounce.ClearFactor || memory.Debounce.Samples != wantMemory.Debounce.Samples ||
		len(cfg.Rules) != len(want.Rules) || fixtures.Section[*config.Disk](cfg).AvailablePercent != fixtures.Section[*config.Disk](want).AvailablePercent {
		t.Errorf("a default was lost: %+v", cfg)
	}
}

// A condition has the debounce of all, but for what its own section says, or its default.
func TestDebounceOfAll(t *testing.T) {
	cfg, err := config.HostSchema().Decode([]byte(header + `
debounce: {clearAfter: 30s, samples: 4}
disk: {debounce: {clearAfter: 1m, badSamples: 1}}
conditions: [{type: KernelDeadlock}]
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range cfg.Conditions {
		d := c.Common().Debounce
		got = append(got, fmt.Sprintf("%s %d of %d, clear %s, unknown %s", c.Name, d.BadSamples, d.Samples, d.ClearAfter, d.UnknownAfter))
	}
	want := []string{
		"MemoryPressure 2 of 4, clear 30s, unknown 5m0s", "DiskPressure 1 of 4, clear 1m0s, unknown 5m0s", "PIDPressure 2 of 4, clear 30s, unknown 5m0s",
		"NetworkUnavailable 3 of 4, clear 30s, unknown 5m0s", "KernelDeadlock 2 of 4, clear 30s, unknown 30m0s",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if _, err := config.HostSchema().Decode([]byte(header + "debounce: {samples: 40}\n")); err == nil || strings.Count(err.Error(), "\n") > 0 {
		t.Errorf("told more than once: %v", err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	rule := func(condition, level, key, effect string) string {
		return "- {condition: " + condition + ", level: " + level + ", taint: {key: \"" + key + "\", effect: " + effect + "}}\n"
	}
	for name, c := range map[string]struct {
		text string
		want []string // all of them must be in the message
	}{
		"empty file":                 {"", []string{"apiVersion: Unsupported value: \"\"", config.APIVersion, config.Kind}},
		"binary file":                {"\x00\x01\xfe\xff", []string{"not YAML"}},
		"a list":                     {"- 1\n", []string{"cannot unmarshal array"}},
		"no header":                  {"memory: {}\n", []string{"apiVersion", "kind", config.APIVersion}},
		"newer version":              {"apiVersion: taintlet.dev/v2\nkind: TaintletConfiguration\n", []string{"apiVersion", "taintlet.dev/v2", "v1alpha1"}},
		"unknown field":              {header + "memory:\n  availablePercnt: 5\n", []string{`memory.availablePercnt: Forbidden: unknown field`}},
		"a typing error":             {header + "memory: {availablePercents: 5}\n", []string{`memory.availablePercents: Forbidden: unknown field; did you mean availablePercent?`}},
		"a typing error in a taint":  {header + "rules: [{taint: {Effects: None}}]\n", []string{`rules[0].taint.Effects: Forbidden: unknown field; did you mean effect?`}},
		"types and values":           {header + "memory: {period: 5, availablePercent: 500, availablePercents: 5}\ndisk: {debounce: {samples: 99}}\n", []string{"memory.period: Invalid value: 5", "memory.availablePercent: Invalid value: 500", "did you mean availablePercent", "disk.debounce.samples: Invalid value: 99"}},
		"doubled field":              {header + "memory: {}\nmemory: {}\n", []string{`"memory" already set`}},
		"wrong type":                 {header + "memory:\n  availablePercent: lots\n", []string{"memory.availablePercent", "lots", "must be a number"}},
		"a value without quotes":     {header + "rules:\n" + rule("DiskPressure", "Degraded", "a", "NoSchedule") + "- {condition: PIDPressure, level: Degraded, taint: {key: b, value: 950, effect: NoSchedule}}\n", []string{"rules[1].taint.value: Invalid value: 950: must be text; put it in quotes: \"950\""}},
		"two wrong types":            {header + "pid: {usedPercent: x}\nheartbeat: 5\n", []string{"pid.usedPercent: Invalid value: \"x\": must be a number", "heartbeat: Invalid value: 5: must be a duration such as 30s"}},
		"half a sample":              {header + "disk: {debounce: {samples: 1.5}}\n", []string{"disk.debounce.samples: Invalid value: 1.5: must be a whole number"}},
		"no amount":                  {header + "memory: {availableBytes: 5 Mi}\n", []string{"memory.availableBytes: Invalid value: \"5 Mi\": must be an amount such as 100Mi"}},
		"no list":                    {header + "disk: {paths: /}\n", []string{"disk.paths: Invalid value: \"/\": must be a list"}},
		"no section":                 {header + "memory: 5\n", []string{"memory: Invalid value: 5: must be a section with fields"}},
		"no truth":                   {header + "eviction: {controlPlane: maybe}\n", []string{"eviction.controlPlane: Invalid value: \"maybe\": must be true or false"}},
		"a number for a level":       {header + "rules:\n- {condition: PIDPressure, level: 3, taint: {key: b, effect: NoSchedule}}\n", []string{"rules[0].level: Invalid value: 3: must be Degraded or Critical"}},
		"negative threshold":         {header + "memory:\n  availablePercent: -1\n", []string{"memory.availablePercent", "-1", "0 to 100"}},
		"not a number":               {header + "pid:\n  usedPercent: .nan\n", []string{"NaN"}},
		"never clears":               {header + "memory:\n  availablePercent: 80\n", []string{"memory.availablePercent", "never clear", "debounce.clearFactor, 1.5, times 80 %"}},
		"period too short":           {header + "memory:\n  period: 1ms\n", []string{"memory.period", "1ms", "250ms"}},
		"max below clearAfter":       {header + "pid:\n  debounce:\n    maxClearAfter: 1s\n", []string{"pid.debounce.maxClearAfter", "2m0s"}},
		"more bad than looked":       {header + "network:\n  debounce:\n    badSamples: 6\n", []string{"network.debounce.badSamples", "6"}},
		"a debounce of all":          {header + "debounce: {samples: 40, badSample: 1}\n", []string{`debounce.samples: Invalid value: 40: must be 1 to 32`, `debounce.badSample: Forbidden: unknown field`}},
		"unknown class":              {header + "network:\n  disabledClasses: [dns, icmp]\n", []string{"network.disabledClasses[1]", `"icmp"`, `"route", "self", "api", "local", "pods", "dns", "peers", "conntrack"`}},
		"a start-up taint in full":   {header + "startup: {taint: \"example.com/starting:NoSchedule\"}\n", []string{`startup.taint: Invalid value: "example.com/starting:NoSchedule": must be the key of a taint, without value and effect`}},
		"a repair in full":           {header + "repair: {after: 25h, reasons: {CutOff: 1s}}\n", []string{`repair.after: Invalid value: "25h": must be 0s to 24h`, `repair.reasons: Forbidden: unknown field`}},
		"a reserved start-up taint":  {header + "startup: {taint: node.kubernetes.io/not-ready}\n", []string{"startup.taint: Forbidden: node.kubernetes.io/not-ready belongs to the control plane"}},
		"a start-up taint of a rule": {header + "startup: {taint: taintlet.dev/disk-pressure}\n", []string{"startup.taint: Forbidden: taintlet.dev/disk-pressure is a key of a rule or of a stand-in"}},
		"other keys":                 {header + "keys: Private\n", []string{`keys: Unsupported value: "Private": supported values: "WellKnown", "Own"`}},
		"relative path":              {header + "disk:\n  paths: [var]\n", []string{"disk.paths[0]", "absolute"}},
		"relative scratch":           {header + "disk: {writeProbe: {directory: tmp}}\n", []string{"disk.writeProbe.directory: Invalid value: \"tmp\": must be an absolute path"}},
		"doubled path":               {header + "disk:\n  paths: [/, /]\n", []string{"disk.paths[1]", "Duplicate"}},
		"no path":                    {header + "disk:\n  paths: []\n", []string{"disk.paths"}},
		"heartbeat too often":        {header + "heartbeat: 1s\n", []string{"heartbeat", "1m to 8h"}},
		"key prefix":                 {header + "keyPrefix: Not_DNS\n", []string{"keyPrefix"}},
		"the control plane's prefix": {header + "keyPrefix: node.kubernetes.io\n", []string{"keyPrefix", "belong to the control plane"}},
		"unknown condition":          {header + "rules:\n" + rule("CPUPressure", "Degraded", "a", "NoSchedule"), []string{"rules[0].condition", "CPUPressure", "MemoryPressure"}},
		"level OK":                   {header + "rules:\n" + rule("MemoryPressure", "OK", "a", "NoSchedule"), []string{"rules[0].level", "Degraded"}},
		"unknown level":              {header + "rules:\n" + rule("MemoryPressure", "Bad", "a", "NoSchedule"), []string{`"Bad"`, "Degraded"}},
		"Critical":                   {header + "rules:\n" + rule("MemoryPressure", "Critical", "a", "NoExecute"), []string{"rules[0].level", "eviction.slots is 0"}},
		"Critical without Degraded":  {header + "eviction: {slots: 1}\nrules:\n" + rule("MemoryPressure", "Critical", "a", "NoExecute") + "- {condition: MemoryPressure, level: Degraded, taint: {effect: None}}\n", []string{"rules[0].level", "MemoryPressure Degraded is needed too"}},
		"Critical switched off":      {header + "eviction: {slots: 1}\nrules:\n- {condition: MemoryPressure, level: Critical, taint: {effect: None}}\n", []string{"rules[0].taint.effect", `"NoExecute"`}},
		"None with a key":            {header + "rules:\n- {condition: MemoryPressure, level: Degraded, taint: {key: a, effect: None}}\n", []string{"rules[0].taint: Forbidden: the effect None switches the default rule off"}},
		"Critical without NoExecute": {header + "eviction: {slots: 1}\nrules:\n" + rule("MemoryPressure", "Critical", "a", "NoSchedule"), []string{"rules[0].taint.effect", `"NoExecute"`}},
		"unknown effect":             {header + "rules:\n" + rule("MemoryPressure", "Degraded", "a", "Never"), []string{"rules[0].taint.effect", "Never", "NoSchedule"}},
		"Degraded evicts":            {header + "rules:\n" + rule("MemoryPressure", "Degraded", "a", "NoExecute"), []string{"rules[0].taint: Forbidden: the effect NoExecute evicts pods", "Critical only"}},
		"no effect":                  {header + "rules:\n- {condition: MemoryPressure, level: Degraded, taint: {key: a}}\n", []string{"rules[0].taint.effect"}},
		"doubled pair": {
			header + "rules:\n" + rule("MemoryPressure", "Degraded", "a", "NoSchedule") + rule("DiskPressure", "Degraded", "a", "NoSchedule"),
			[]string{"rules[0].taint", "a:NoSchedule", "the rule for DiskPressure Degraded asks for it too"},
		},
		"a default rule's pair": {
			header + "rules:\n" + rule("MemoryPressure", "Degraded", "node.kubernetes.io/pid-pressure", "NoSchedule"),
			[]string{"rules[0].taint", "node.kubernetes.io/pid-pressure:NoSchedule", "the rule for PIDPressure Degraded asks for it too"},
		},
		"doubled level": {
			header + "rules:\n" + rule("MemoryPressure", "Degraded", "a", "NoSchedule") + rule("MemoryPressure", "Degraded", "b", "NoSchedule"),
			[]string{"rules[1]", "Duplicate", "MemoryPressure Degraded"},
		},
		"empty key":    {header + "rules:\n" + rule("MemoryPressure", "Degraded", "", "NoSchedule"), []string{"rules[0].taint.key"}},
		"name over 63": {header + "rules:\n" + rule("MemoryPressure", "Degraded", strings.Repeat("a", 64), "NoSchedule"), []string{"rules[0].taint.key", "63"}},
		"prefix over 253": {
			header + "rules:\n" + rule("MemoryPressure", "Degraded", strings.Repeat("a", 254)+"/b", "NoSchedule"),
			[]string{"rules[0].taint.key", "253"},
		},
		"control plane's pair": {header + "rules:\n" + rule("MemoryPressure", "Degraded", "node.kubernetes.io/not-ready", "NoExecute"), []string{"rules[0].taint.key", "belongs to the control plane"}},
		"cordon":               {header + "rules:\n" + rule("MemoryPressure", "Degraded", "node.kubernetes.io/unschedulable", "NoSchedule"), []string{"rules[0].taint.key", "belongs to administrators"}},
		"a link to the page":   {header + "memroy: {period: 5s}\n", []string{"did you mean memory? (docs/configuration.md)"}},
		"links":                {header + "memory: {period: 5}\nMemory: 5\n", []string{"1h (docs/configuration.md#memory)", "memory? (docs/configuration.md)"}},
		"all at once":          {header + "memory:\n  availablePercent: -1\n  nonsense: 1\ndisk:\n  inodesPercent: 200\n", []string{"memory.availablePercent", "memory.nonsense", "disk.inodesPercent"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.HostSchema().Decode([]byte(c.text))
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("message lacks %q: %v", want, err)
				}
			}
		})
	}
}

func TestOnlyPairsOfRulesAreProduced(t *testing.T) {
	cfg, err := config.HostSchema().Decode([]byte(header + "keyPrefix: example.com\nrules:\n- {condition: MemoryPressure, level: Degraded, taint: {key: example.org/tight, effect: PreferNoSchedule}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for pair, want := range map[string]bool{
		"example.org/tight:PreferNoSchedule":                                     true,
		"example.com/tight:PreferNoSchedule":                                     true, // its stand-in
		"node.kubernetes.io/memory-pressure:NoSchedule":                          true, // built in
		"node.kubernetes.io/memory-pressure:NoExecute":                           true,
		"taintlet.dev/disk-pressure:NoSchedule":                                  true,
		"status-taint.cluster-autoscaler.kubernetes.io/disk-pressure:NoSchedule": true, // of an earlier setting autoscaler
		"status-taint.cluster-autoscaler.kubernetes.io/tight:PreferNoSchedule":   false,
		"example.org/tight:NoExecute":                                            false,
		"dedicated:NoSchedule":                                                   false,
		"node.kubernetes.io/not-ready:NoExecute":                                 false,
	} {
		var p taints.Pair
		if err := p.UnmarshalText([]byte(pair)); err != nil {
			t.Fatal(err)
		}
		if got := cfg.Policy().Produces(p); got != want {
			t.Errorf("Produces(%s) = %t", pair, got)
		}
		for _, prefix := range []string{"taintlet.dev", "example.com", "example.co"} {
			for _, rule := range append(cfg.Policy().BuiltInRules(), cfg.Rules...) {
				if got, want := p.StandsInFor(rule.Taint.Pair(), prefix), p == taints.StandInFor(rule.Taint.Pair(), prefix); got != want {
					t.Errorf("%s.StandsInFor(%s, %s) = %t", p, rule.Taint.Pair(), prefix, got)
				}
			}
		}
	}
}

// A value of the wrong type is all that is reported: what was not read because of
// it is no second mistake.
func TestAWrongTypeIsReportedAlone(t *testing.T) {
	_, err := config.HostSchema().Decode([]byte("heartbeat: 5 min\n" + header))
	if want := `heartbeat: Invalid value: "5 min": must be a duration such as 30s, 5m or 1h (docs/configuration.md#heartbeat)`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A file that stays as it is is new once, whether it is valid or not, and every change of it is seen.
func TestReloaderReturnsWhatIsNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	load := config.HostSchema().Reloader(path, config.HashOf([]byte(header)))
	if err := os.WriteFile(path, []byte(header), 0o600); err != nil {
		t.Fatal(err)
	}
	if cfg, err := load(); cfg != nil || err != nil {
		t.Errorf("the file that is in force: %v, %v", cfg, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := load(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("without a file: %v", err)
	}
	var hashes []string
	for _, c := range []struct{ text, err string }{
		{header, ""}, {header + "heartbeat: 2m\n", ""}, {"", "apiVersion: Unsupported value"}, {"kind: [", "not YAML"}, {header, ""},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		first, firstErr := load()
		second, secondErr := load()
		switch {
		case second != nil || secondErr != nil:
			t.Errorf("%q is new again: %v, %v", c.text, second, secondErr)
		case c.err != "" && (firstErr == nil || !strings.Contains(firstErr.Error(), path+": "+c.err)):
			t.Errorf("%q: %v, want %s", c.text, firstErr, c.err)
		case c.err == "" && firstErr != nil:
			t.Errorf("%q: %v", c.text, firstErr)
		case c.err == "":
			hashes = append(hashes, first.Hash+" "+first.Heartbeat.String())
		}
	}
	if len(hashes) != 3 || hashes[0] != hashes[2] || hashes[0] == hashes[1] || !strings.HasSuffix(hashes[1], "2m0s") {
		t.Errorf("configurations %q", hashes)
	}
}
