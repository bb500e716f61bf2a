package config_test

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/agent/config"
	"github.com/taintlet/taintlet/test/fixtures"
)

const documentation = "../../docs/configuration.md"

// The file in docs/configuration.md is the default configuration, and names
// every field.
func TestDocumentedFileIsTheDefault(t *testing.T) {
	text := documentedFile(t)
	cfg, err := config.HostSchema().Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	for i, c := range cfg.Conditions {
		if got, want := inJSON(t, c.Section), inJSON(t, want.Conditions[i].Section); got != want {
			t.Errorf("%s: the documentation has\n%s\nthe default is\n%s", c.Field, got, want)
		}
	}
	if got, want := inJSON(t, cfg), inJSON(t, want); got != want {
		t.Errorf("the documentation has\n%s\nthe default is\n%s", got, want)
	}

	var file map[string]any
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	for _, c := range want.Conditions {
		section, _ := file[c.Field].(map[string]any)
		named(t, c.Field, section, reflect.TypeOf(c.Section).Elem())
	}
	named(t, "the file", file, reflect.TypeFor[config.Config]())
	page, err := os.ReadFile(documentation)
	if err != nil {
		t.Fatal(err)
	}
	for name := range file { // errors link to it
		if name != "apiVersion" && name != "kind" && !strings.Contains(string(page), "\n## "+name+"\n") && !strings.Contains(string(page), `<a id="`+strings.ToLower(name)+`"></a>`) {
			t.Errorf("%s has no chapter of its own", name)
		}
	}
}

// documentedFile is the block of YAML in the documentation.
func documentedFile(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(documentation)
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(text), "```yaml\n")
	block, _, closed := strings.Cut(block, "\n```")
	if !found || !closed {
		t.Fatalf("%s has no block of YAML", documentation)
	}
	return block
}

func inJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// named checks that the file has every field of a struct.
func named(t *testing.T, where string, file map[string]any, of reflect.Type) {
	t.Helper()
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-", !field.IsExported():
		case where != "the file" && (name == "debounce" || name == "mode"): // what is not there is that of all
		case name == "" && field.Anonymous:
			named(t, where, file, field.Type)
		case file[name] == nil:
			t.Errorf("%s lacks %s", where, name)
		default:
			if inner, ok := file[name].(map[string]any); ok && field.Type.Kind() == reflect.Struct {
				named(t, where+"."+name, inner, field.Type)
			}
		}
	}
}

// The page says what 0 means in each field that can be 0.
func TestEveryZeroIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	comments, path := map[string]string{}, []string{}
	for line := range strings.Lines(string(page)) {
		name, rest, isField := strings.Cut(strings.TrimSpace(line), ":")
		if line == "## Find your thresholds\n" {
			break
		} else if depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2; isField && depth <= len(path) {
			path = append(path[:depth], name)
			_, comments[strings.Join(path, ".")], _ = strings.Cut(rest, "#")
		}
	}
	count := 0
	for _, bound := range fixtures.Bounds() {
		isOfSection := strings.Contains(bound.Field, "[]") || strings.Contains(bound.Field, ".debounce.")
		if isOfSection || !bound.OrZero && strings.TrimRight(bound.Low, "s") != "0" {
			continue
		}
		count++
		if !regexp.MustCompile(`\b0s?( with \w+)?: `).MatchString(comments[bound.Field]) {
			t.Errorf("%s can be 0, and the page does not say what that means: %q", bound.Field, comments[bound.Field])
		}
	}
	if count < 12 {
		t.Errorf("only %d fields can be 0", count)
	}
}

// A person can change at most 45 settings. Each field of a type counts once, wherever the file has
// it: those of debounce, of a taint, and period; so does mode, and an override has nodeSelector.
func TestThereAreFewSettings(t *testing.T) {
	counted := map[string]bool{"an override's nodeSelector": true}
	var count func(reflect.Type)
	count = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			elem := field.Type
			if elem.Kind() == reflect.Slice {
				elem = elem.Elem()
			}
			if elem.Kind() == reflect.Pointer {
				elem = elem.Elem()
			}
			isSection := elem.Kind() == reflect.Struct && !elem.Implements(reflect.TypeFor[json.Marshaler]())
			switch {
			case name == "-", !field.IsExported(), name == "overrides", field.Type == reflect.TypeFor[metav1.TypeMeta]():
			case isSection:
				count(elem)
			case name == "mode":
				counted[name] = true
			default:
				counted[of.String()+"."+name] = true
			}
		}
	}
	count(reflect.TypeFor[config.Config]())
	for _, c := range config.Default().Conditions {
		count(reflect.TypeOf(c.Section))
	}
	if len(counted) != 45 {
		t.Errorf("%d settings: %q", len(counted), slices.Sorted(maps.Keys(counted)))
	}
}
