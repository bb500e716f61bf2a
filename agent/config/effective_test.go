package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/config"
)

// The effective configuration is a file that means the same, has every field, and
// marks what the file at hand sets.
func TestEffective(t *testing.T) {
	folder := t.TempDir()
	load := func(text string) (*config.Config, string) {
		t.Helper()
		path := filepath.Join(folder, "config.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.HostSchema().Load(path)
		if err != nil {
			t.Fatal(err)
		}
		return cfg, config.HostSchema().Effective(cfg)
	}
	cfg, text := load(header + `
memory: {availablePercent: 7, availableBytes: 100Mi, debounce: {clearAfter: 30s}}
disk: {paths: [/], writeProbe: {directory: /scratch}}
eviction: {slots: 1}
rules:
- {condition: MemoryPressure, level: Degraded, taint: {key: example.com/a, value: "950", effect: NoSchedule}}
`)
	for _, want := range []string{
		"\n  availablePercent: 7  # set; default: 5\n", "\n  availableBytes: 100Mi  # set; the default too\n", "\n    clearAfter: 30s  # set; default: 2m0s\n",
		"\n  paths:  # set; 3 by default\n  - /\n", "\n    directory: /scratch  # set; default: \"\"\n", "\n  slots: 1  # set; default: 0\n", "\n  disabledClasses: []\n",
		"\nrules:  # set; 4 by default\n- {condition: MemoryPressure, level: Degraded, taint: {effect: NoSchedule, key: example.com/a, value: \"950\"}}\n", "\nheartbeat: 5m0s\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	if got := strings.Count(text, "# set"); got != 7 {
		t.Errorf("%d fields are marked", got)
	}
	again, _ := load(text)
	if got, want := everything(t, again), everything(t, cfg); got != want {
		t.Errorf("read again it is\n%s\nand was\n%s", got, want)
	}
	builtIn := config.HostSchema().Default()
	if text = config.HostSchema().Effective(builtIn); strings.Contains(text, "#") {
		t.Errorf("the default has marks:\n%s", text)
	}
	again, _ = load(text)
	if got, want := everything(t, again), everything(t, builtIn); got != want {
		t.Errorf("read again the default is\n%s\nand was\n%s", got, want)
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
