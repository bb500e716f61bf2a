package config_test

import (
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/config"
)

// The effective configuration is a file that means the same, has every field, and
// names what differs from the default.
func TestEffective(t *testing.T) {
	cfg, err := config.HostSchema().Decode([]byte(header + `
memory: {availablePercent: 7, availableBytes: 100Mi, debounce: {clearAfter: 30s}}
disk: {paths: [/], writeProbe: {directory: "/scratch\n"}}
eviction: {slots: 1}
rules:
- {condition: MemoryPressure, level: Degraded, taint: {key: example.com/a, value: "950", effect: NoSchedule}}
`))
	if err != nil {
		t.Fatal(err)
	}
	text := config.HostSchema().Effective(cfg)
	for _, want := range []string{
		"# memory.availablePercent 5 → 7\n", "\n  availablePercent: 7\n", "# memory.debounce.clearAfter unset → 30s\n", "\n  debounce:\n    clearAfter: 30s\n",
		"\n# disk.paths [\"/\",\"/var/lib/kubelet\",\"/var/lib/containerd\"] → [\"/\"]\n", "\n  paths:\n  - /\n", "\n# disk.writeProbe.directory \"\" → /scratch\ufffd\n", "\n# eviction.slots 0 → 1\n", "\n  disabledClasses: []\n",
		"\n# rules[MemoryPressure Degraded] node.kubernetes.io/memory-pressure:NoSchedule → example.com/a=950:NoSchedule\n", "\n    key: example.com/a\n    value: \"950\"\n", "\nheartbeat: 5m0s\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	if got := strings.Count(text, " → "); got != 6 {
		t.Errorf("%d fields differ", got)
	}
	for _, cfg := range []*config.Config{cfg, config.Default()} {
		text = config.HostSchema().Effective(cfg)
		again, err := config.HostSchema().Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := everything(t, again), everything(t, cfg); got != want {
			t.Errorf("read again it is\n%s\nand was\n%s", got, want)
		}
	}
	if strings.Contains(text, "#") {
		t.Errorf("the default differs from itself:\n%s", text)
	}
	for _, name := range fieldsOf(t, documentedFile(t)) {
		if !strings.Contains(text, name+":") {
			t.Errorf("lacks %s", name)
		}
	}
}

// everything is a configuration with its sections.
func everything(t *testing.T, cfg *config.Config) string {
	t.Helper()
	text := inJSON(t, cfg)
	for _, condition := range cfg.Conditions {
		text += inJSON(t, condition.Section)
	}
	return text
}

// fieldsOf are the names in a file.
func fieldsOf(t *testing.T, text string) (names []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if name, _, found := strings.Cut(strings.TrimLeft(line, " "), ":"); found && name != "" && !strings.ContainsAny(name, "#-{") {
			names = append(names, name)
		}
	}
	if len(names) < 40 {
		t.Fatalf("only %d fields: %q", len(names), names)
	}
	return names
}
