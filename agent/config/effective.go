package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Effective writes the whole of a configuration as a file. A comment marks each field that the
// file of the configuration sets, or its override (see For), with its default.
func (s Schema) Effective(cfg *Config) string {
	given := map[string]any{}
	for name, value := range cfg.given {
		given[name] = shown(value)
	}
	delete(given, "apiVersion") // which every file has
	delete(given, "kind")
	e := effective{common: reflect.ValueOf(cfg.Debounce)}
	e.fields("", reflect.ValueOf(cfg).Elem(), reflect.ValueOf(s.Default()).Elem(), given)
	return e.text.String()
}

// effective writes a configuration, field by field in the order of its types.
type effective struct {
	text strings.Builder
	// common is the debounce of all conditions, of which a section shows what differs.
	common reflect.Value
}

// fields writes those of a struct, beside its defaults and what the file gives.
func (e *effective) fields(indent string, of, fallback reflect.Value, given map[string]any) {
	defaults := members(fallback)
	for i, m := range members(of) {
		_, isSet := given[m.name]
		inner, _ := given[m.name].(map[string]any)
		switch {
		case m.name == debounceField && indent != "":
			e.differences(indent, m.value, defaults[i].value, inner)
		case isSection(m.value.Type()):
			fmt.Fprintf(&e.text, "%s%s:\n", indent, m.name)
			e.fields(indent+"  ", m.value, defaults[i].value, inner)
		default:
			e.leaf(indent, m, defaults[i].value, isSet)
		}
	}
}

// differences writes of a section's debounce what differs from that of all conditions, or what
// the file sets.
func (e *effective) differences(indent string, of, fallback reflect.Value, given map[string]any) {
	heading, common, defaults := indent+debounceField+":\n", members(e.common), members(fallback)
	for i, m := range members(of) {
		if _, isSet := given[m.name]; isSet || flow(m.value) != flow(common[i].value) {
			e.text.WriteString(heading)
			e.leaf(indent+"  ", m, defaults[i].value, isSet)
			heading = ""
		}
	}
}

// leaf writes a single value or a list, and marks it if the file sets it.
func (e *effective) leaf(indent string, m member, fallback reflect.Value, isSet bool) {
	isList := m.value.Kind() == reflect.Slice
	mark, now, before := "", flow(m.value), flow(fallback)
	switch {
	case isSet && now == before:
		mark = "  # set; the default too"
	case isSet && isList:
		mark = fmt.Sprintf("  # set; %d by default", fallback.Len())
	case isSet:
		mark = "  # set; default: " + before
	}
	if !isList || m.value.Len() == 0 {
		fmt.Fprintf(&e.text, "%s%s: %s%s\n", indent, m.name, now, mark)
		return
	}
	fmt.Fprintf(&e.text, "%s%s:%s\n", indent, m.name, mark)
	for i := range m.value.Len() {
		fmt.Fprintf(&e.text, "%s- %s\n", indent, flow(m.value.Index(i)))
	}
}

// flow returns a value in one line of YAML.
func flow(value reflect.Value) string {
	var parts []string
	switch {
	case value.Kind() == reflect.Slice:
		for i := range value.Len() {
			parts = append(parts, flow(value.Index(i)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case value.Kind() == reflect.Map:
		keyed := map[string]reflect.Value{}
		for key, entry := range value.Seq2() {
			keyed[key.String()] = entry
		}
		for _, key := range slices.Sorted(maps.Keys(keyed)) {
			parts = append(parts, flow(reflect.ValueOf(key))+": "+flow(keyed[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case value.Kind() == reflect.Pointer, value.Kind() == reflect.Interface && !value.IsNil():
		return flow(value.Elem())
	case isSection(value.Type()):
		for _, m := range members(value) {
			if !m.value.IsZero() || !strings.HasSuffix(m.tag.Get("json"), ",omitempty") {
				parts = append(parts, m.name+": "+flow(m.value))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	text, _ := yaml.Marshal(value.Interface()) // text, numbers and what marshals as such
	return strings.TrimSpace(string(text))
}
