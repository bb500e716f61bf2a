package monitoring

import (
	"encoding/json"
	"slices"
	"testing"
)

// fieldsOf are the fields that Grafana reads, of those that the dashboards use, by where they
// are (kinds/dashboard/dashboard_kind.cue and public/app/plugins/panel/*/panelcfg.cue, Grafana
// 11). It skips others without a word.
func fieldsOf() map[string][]string {
	return map[string][]string{
		"":                 {"uid", "title", "description", "tags", "schemaVersion", "version", "editable", "refresh", "time", "links", "templating", "panels"},
		"panels":           {"id", "type", "title", "description", "datasource", "gridPos", "targets", "fieldConfig", "transformations", "options"},
		"datasource":       {"type", "uid"},
		"gridPos":          {"x", "y", "w", "h"},
		"targets":          {"refId", "expr", "legendFormat", "instant", "format"},
		"fieldConfig":      {"defaults", "overrides"},
		"defaults":         {"unit", "min", "max", "links", "custom", "mappings", "thresholds"},
		"overrides":        {"matcher", "properties"},
		"matcher":          {"id", "options"},
		"properties":       {"id", "value"},
		"transformations":  {"id", "options"},
		"organize options": {"excludeByName", "renameByName"},
	}
}

// unknownFields returns the fields of a value of a dashboard that Grafana does not read.
func unknownFields(where string, value any) (all []string) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			all = append(all, unknownFields(where, element)...)
		}
	case map[string]any:
		known, isListed := fieldsOf()[where]
		if !isListed {
			return nil
		}
		for field, inner := range value {
			if !slices.Contains(known, field) {
				all = append(all, where+"."+field)
			}
			if where == "transformations" && field == "options" && value["id"] == "organize" {
				field = "organize options"
			}
			all = append(all, unknownFields(field, inner)...)
		}
	}
	return all
}

// Grafana skips a field or a name that it does not know, and a new name that is empty, without
// a word: organize only excludes a field that is in excludeByName.
func TestGrafanaReadsAllOfTheDashboards(t *testing.T) {
	for _, name := range []string{"fleet.json", "node.json"} {
		text := read(t, folder+name)
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		if unknown := unknownFields("", value); len(unknown) > 0 {
			t.Errorf("%s: Grafana does not read %q", name, unknown)
		}
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
