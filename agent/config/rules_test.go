package config_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
)

// pairsAsked are the taints of a configuration, each with its condition and level.
func pairsAsked(cfg *config.Config) []string {
	var all []string
	for _, r := range cfg.Policy().Rules {
		all = append(all, string(r.Condition)+" "+r.Level.String()+" "+r.Taint.Pair().String())
	}
	slices.Sort(all)
	return all
}

// A rule of a file without reasons replaces the default of its condition and level, and no
// other; one with reasons is added.
func TestRulesAreReplacedOneByOne(t *testing.T) {
	defaults := pairsAsked(config.Default())
	for name, test := range map[string]struct {
		text          string
		added, gone   []string
		withoutTaints []probes.Condition
	}{
		"none given": {text: "rules:\n"},
		"another key": {
			text:  "rules:\n- {condition: DiskPressure, level: Degraded, taint: {key: example.com/disk, effect: PreferNoSchedule}}\n",
			added: []string{"DiskPressure Degraded example.com/disk:PreferNoSchedule"},
			gone:  []string{"DiskPressure Degraded node.kubernetes.io/disk-pressure:NoSchedule"},
		},
		"for a reason": {
			text:  "rules:\n- {condition: DiskPressure, level: Degraded, reasons: [FileSystemReadOnly], taint: {key: example.com/look, effect: NoSchedule}}\n",
			added: []string{"DiskPressure Degraded example.com/look:NoSchedule"},
		},
		"for a reason only": {
			text: "rules:\n- {condition: DiskPressure, level: Degraded, taint: {effect: None}}\n" +
				"- {condition: DiskPressure, level: Degraded, reasons: [FileSystemReadOnly], taint: {key: node.kubernetes.io/disk-pressure, effect: NoSchedule}}\n",
		},
		"an eviction": {
			text:  "eviction: {slots: 1}\nrules:\n- {condition: MemoryPressure, level: Critical, taint: {key: node.kubernetes.io/memory-pressure, effect: NoExecute}}\n",
			added: []string{"MemoryPressure Critical node.kubernetes.io/memory-pressure:NoExecute"},
		},
		"one off": {
			text:          "rules:\n- {condition: NetworkUnavailable, level: Degraded, taint: {effect: None}}\n",
			gone:          []string{"NetworkUnavailable Degraded node.kubernetes.io/network-unavailable:NoSchedule"},
			withoutTaints: []probes.Condition{probes.NetworkUnavailable},
		},
		"own keys": {
			text: "keys: Own\n", gone: defaults,
			added: []string{"DiskPressure Degraded taintlet.dev/disk-pressure:NoSchedule", "MemoryPressure Degraded taintlet.dev/memory-pressure:NoSchedule",
				"NetworkUnavailable Degraded taintlet.dev/network-unavailable:NoSchedule", "PIDPressure Degraded taintlet.dev/pid-pressure:NoSchedule"},
		},
		"own keys and a rule": {
			text: "keys: Own\nkeyPrefix: example.com\nrules:\n- {condition: DiskPressure, level: Degraded, taint: {key: node.kubernetes.io/disk-pressure, effect: NoSchedule}}\n",
			gone: slices.DeleteFunc(slices.Clone(defaults), func(pair string) bool { return strings.HasPrefix(pair, "Disk") }),
			added: []string{"MemoryPressure Degraded example.com/memory-pressure:NoSchedule", "NetworkUnavailable Degraded example.com/network-unavailable:NoSchedule",
				"PIDPressure Degraded example.com/pid-pressure:NoSchedule"},
		},
		"all off": {text: "rules: []\n", gone: defaults, withoutTaints: config.Default().Names()},
	} {
		cfg, err := config.HostSchema().Decode([]byte(header + test.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := slices.DeleteFunc(slices.Clone(defaults), func(pair string) bool { return slices.Contains(test.gone, pair) })
		want = append(want, test.added...)
		slices.Sort(want)
		if got := pairsAsked(cfg); !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if got := cfg.WithoutTaint(); !slices.Equal(got, test.withoutTaints) {
			t.Errorf("%s: %v have no taint, want %v", name, got, test.withoutTaints)
		}
	}
}

// examples are the documents in which people find rules to copy.
func examples(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	return append(pages, "../../README.md", "../../deploy/README.md")
}

// Whoever copies an example of rules from the documentation loses no taint, unless the
// example says None.
func TestExamplesLoseNoTaint(t *testing.T) {
	blocks := regexp.MustCompile("(?s)(?:```yaml\n(.*?)\n```|<<'EOF'\n(.*?)\nEOF\n)")
	count := 0
	for _, page := range examples(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks.FindAllStringSubmatch(string(text), -1) {
			example := block[1] + block[2]
			cfg := exampleOf(t, page, example)
			if cfg == nil {
				continue
			}
			count++
			off := slices.IndexFunc(cfg.Rules, func(r decide.Rule) bool { return r.Taint.Effect == config.NoTaint }) >= 0
			if without := cfg.WithoutTaint(); len(without) > 0 && !off {
				t.Errorf("%s: %v have no taint with\n%s", page, without, example)
			}
		}
	}
	if count < 4 {
		t.Errorf("only %d examples have rules", count)
	}
}

// exampleOf reads a configuration or the chart's values; nil: it has no rules.
func exampleOf(t *testing.T, page, example string) *config.Config {
	t.Helper()
	var file map[string]any
	if !strings.Contains(example, "rules:") || yaml.Unmarshal([]byte(example), &file) != nil {
		return nil
	}
	if values, isChart := file["config"].(map[string]any); isChart {
		if evict, found := file["evict"].(map[string]any); found {
			values["eviction"] = evict
		}
		file = values
		file["apiVersion"], file["kind"] = config.APIVersion, config.Kind
	}
	text, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.HostSchema().Decode(text)
	if err != nil {
		t.Fatalf("%s: %v in\n%s", page, err, example)
	}
	return cfg
}
