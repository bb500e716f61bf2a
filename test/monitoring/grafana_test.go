package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/taintlet/taintlet/test/cluster"
)

// Grafana skips a field or a name that it does not know without a word. npm has its schema as types.
func TestDashboardsAreAsGrafanasSchema(t *testing.T) {
	if !cluster.Required("grafana") {
		t.Skip("needs npm: set TAINTLET_REQUIRE=grafana")
	}
	dir := t.TempDir()
	run := func(program string, args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), program, args...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", program, err, out)
		}
	}
	run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock", "@grafana/schema@13.2.3", "typescript@5.9.3")
	sources := map[string]string{"schema.ts": read(t, "testdata/schema.ts")}
	for _, name := range []string{"fleet", "node"} {
		sources[name+".ts"] = "import type { Checked } from './schema';\nexport const dashboard: Checked = " + read(t, folder+name+".json")
	}
	for name, text := range sources {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run("node_modules/.bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler", "--target", "es2022", "fleet.ts", "node.ts")
}

// A new name of a column that is empty is skipped, too: organize only excludes a field that is in
// excludeByName.
func TestColumnsOfTablesHaveNames(t *testing.T) {
	for _, name := range []string{"fleet.json", "node.json"} {
		for _, p := range ReadDashboard(t, name).Panels {
			p.checkNames(t, name)
		}
	}
}

// checkNames checks that the names of columns in a table are those of columns.
func (p Panel) checkNames(t *testing.T, dashboard string) {
	t.Helper()
	if p.Type != "table" {
		return
	}
	made, shown := []string{"Time"}, columnOrder()
	for _, q := range p.Targets {
		made = append(made, q.valueColumn(len(p.Targets)))
		shown = append(shown, p.columnOf(q, len(p.Targets)))
	}
	for _, transformation := range p.Transformations {
		for from, to := range transformation.Options.RenameByName {
			if to == "" || !slices.Contains(made, from) {
				t.Errorf("%s, %s: renames %q to %q", dashboard, p.Title, from, to)
			}
		}
		for column := range transformation.Options.ExcludeByName {
			if !slices.Contains(made, column) {
				t.Errorf("%s, %s: excludes %q, which no query makes", dashboard, p.Title, column)
			}
		}
	}
	for _, override := range p.FieldConfig.Overrides {
		if override.Matcher.ID == "byName" && !slices.Contains(shown, override.Matcher.Options) {
			t.Errorf("%s, %s: overrides %q, which is not shown", dashboard, p.Title, override.Matcher.Options)
		}
	}
	for _, by := range p.Options.SortBy {
		if !slices.Contains(shown, by.DisplayName) {
			t.Errorf("%s, %s: sorts by %q, which is not shown", dashboard, p.Title, by.DisplayName)
		}
	}
}
