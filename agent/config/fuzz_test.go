package config

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzConfiguration: whatever a file holds, it is refused in a short text, or what is in force
// can be written as a file that means the same.
func FuzzConfiguration(f *testing.F) {
	const header = "apiVersion: taintlet.dev/v1alpha1\nkind: TaintletConfiguration\n"
	for _, text := range []string{
		"", header, header + "memory: {availablePercent: 7}\nheartbeat: 10m\n", "{}", "null", "[]",
		header + "rules: []\n", header + "rules:\n- {condition: PIDPressure, level: Degraded, taint: {effect: None}}\n",
		header + "rules:\n- {condition: MemoryPressure, level: Critical, taint: {key: example.com/a, effect: NoExecute}}\n",
		header + "conditions:\n- {type: KernelDeadlock, staleAfter: 10m}\nmemory: {availableBytes: 1Gi}\n",
		header + "overrides: [{nodeSelector: {pool: batch, \"on\": \"\"}, memory: {period: null}, rules: []}]\n",
		header + "memory: {earlyPercent: 20}\nkeys: Own\nkeyPrefix: example.com\ndisk: {mountPoints: [/data]}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before, err := effectiveOf(t, data)
		if err != nil {
			if len(err.Error()) > 8<<10 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		after, err := effectiveOf(t, []byte(before))
		if err != nil {
			t.Fatalf("what is in force is refused: %v\n%s", err, before)
		}
		if before != after {
			t.Errorf("the effective configuration means something else:\n%s\n%s", before, after)
		}
	})
}

// effectiveOf is the whole configuration that a file gives.
func effectiveOf(t *testing.T, data []byte) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := HostSchema().Load(path)
	if err != nil {
		return "", err
	}
	return HostSchema().Effective(cfg), nil
}
