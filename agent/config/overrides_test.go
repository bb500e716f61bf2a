package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/taints"
	"github.com/taintlet/taintlet/test/fixtures"
)

// The first override whose labels a Node has is merged into the file, and the taints of all of
// them are ours on each Node.
func TestOverrides(t *testing.T) {
	file, err := config.HostSchema().Decode([]byte(header + `
memory: {availablePercent: 7, debounce: {clearAfter: 1m, samples: 4}}
disk: {paths: [/, /data]}
overrides:
- nodeSelector: {pool: batch, gpu: "true"}
  memory: {availablePercent: 9, debounce: {samples: null}}
  disk: {paths: [/scratch]}
- nodeSelector: {pool: batch}
  rules: [{condition: MemoryPressure, level: Degraded, taint: {key: example.com/batch, effect: PreferNoSchedule}}]
- nodeSelector: {pool: left-alone}
  rules: []
`))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		labels  map[string]string
		percent float64
		samples int
		paths   string
		rules   int
		named   string
	}{
		"none":        {nil, 7, 4, "/ /data", 4, ""},
		"half of one": {map[string]string{"gpu": "true"}, 7, 4, "/ /data", 4, ""},
		"both":        {map[string]string{"pool": "batch", "gpu": "true"}, 9, 3, "/scratch", 4, "overrides[0] {gpu=true,pool=batch}"},
		"the second":  {map[string]string{"pool": "batch", "gpu": "false"}, 7, 4, "/ /data", 4, "overrides[1] {pool=batch}"},
		"no rules":    {map[string]string{"pool": "left-alone"}, 7, 4, "/ /data", 0, "overrides[2] {pool=left-alone}"},
	} {
		cfg := file.For(test.labels)
		memory, disk := fixtures.Section[*config.Memory](cfg), fixtures.Section[*config.Disk](cfg)
		if memory.AvailablePercent != test.percent || memory.Debounce.Samples != test.samples || memory.Debounce.ClearAfter.Minutes() != 1 ||
			strings.Join(disk.Paths, " ") != test.paths || len(cfg.Policy().Rules) != test.rules || cfg.Override != test.named || cfg.Hash != file.Hash {
			t.Errorf("%s: %s %v %v, %d rules", name, cfg.Override, memory, disk.Paths, len(cfg.Policy().Rules))
		}
		policy := cfg.Policy()
		if pair := (taints.Pair{Key: "example.com/batch", Effect: taints.PreferNoSchedule}); !policy.Produces(pair) || policy.Produces(taints.Pair{Key: "example.com/other", Effect: taints.NoSchedule}) {
			t.Errorf("%s: the taint of another override is not ours, or that of nobody is", name)
		}
	}
}

// An override is checked as a file is, and says which one it is.
func TestBadOverridesAreRefused(t *testing.T) {
	for text, want := range map[string][]string{
		"5":                             {"overrides: Invalid value: 5: must be a list"},
		"[5]":                           {"overrides[0]: Invalid value: 5: must be a section"},
		"[{memory: {}}]":                {"overrides[0].nodeSelector: Invalid value: null: must be labels of Nodes"},
		"[{nodeSelector: {}}]":          {"overrides[0].nodeSelector: Invalid value"},
		"[{nodeSelector: {gpu: true}}]": {`overrides[0].nodeSelector: Invalid value: {"gpu":true}: must be labels of Nodes, such as {example.com/pool: batch, example.com/gpu: "true"}`},
		"[{nodeSelector: {a: 'b c'}}]":  {`overrides[0].nodeSelector: Invalid value: "b c"`},
		"[{nodeSelector: {a: b}, heartbeat: 1m}]":                                       {"overrides[0].heartbeat: Forbidden"},
		"[{nodeSelector: {a: b}, overrides: []}]":                                       {"overrides[0].overrides: Forbidden"},
		"[{nodeSelector: {a: b}, memory: {availablePercent: 500}, pid: 5}]":             {"overrides[0].pid: Invalid value: 5: must be a section"},
		"[{nodeSelector: {a: b}}, {nodeSelector: {c: d}, memory: {periods: 1s}}]":       {`overrides[1].memory.periods: Forbidden: unknown field`},
		"[{nodeSelector: {a: b}, rules: [{condition: DiskPressure, level: Critical}]}]": {"overrides[0].rules[0].level: Forbidden: Critical evicts pods"},
	} {
		_, err := config.HostSchema().Decode([]byte(header + "overrides: " + text + "\n"))
		if err == nil || slices.ContainsFunc(want, func(part string) bool { return !strings.Contains(err.Error(), part) }) {
			t.Errorf("%s: %v", text, err)
		}
	}
	_, err := config.HostSchema().Decode([]byte(header + "pid: {usedPercent: 101}\noverrides: [{nodeSelector: {a: b}, memory: {period: 2s}}]\n"))
	if err == nil || strings.Count(err.Error(), "\n") > 0 {
		t.Errorf("what is wrong with the file is told once more for the override: %v", err)
	}
}
