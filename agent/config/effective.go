package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Effective loads a file as Load does. Beside it, it returns the whole
// configuration as a file, in which a comment marks each field that the file at
// path sets, with its default.
func (s Schema) Effective(path string) (*Config, string, error) {
	cfg, data, err := s.load(path)
	if err != nil {
		return nil, "", err
	}
	text, err := s.whole(cfg, data)
	return cfg, text, err
}

// EffectiveOf is Effective of what a file holds.
func (s Schema) EffectiveOf(data []byte) (*Config, string, error) {
	cfg, err := s.Decode(data)
	if err != nil {
		return nil, "", err
	}
	text, err := s.whole(cfg, data)
	return cfg, text, err
}

// whole writes a configuration that was decoded from data.
func (s Schema) whole(cfg *Config, data []byte) (string, error) {
	var given map[string]any
	if err := yaml.Unmarshal(data, &given); err != nil {
		return "", err
	}
	e := &effective{common: reflect.ValueOf(cfg.Debounce)}
	e.fields("", reflect.ValueOf(cfg).Elem(), reflect.ValueOf(s.Default()).Elem(), given)
	return e.text.String(), e.err
}

// effective writes a configuration, field by field in the order of its types.
type effective struct {
	text strings.Builder
	err  error
	// common is the debounce of all conditions, of which a section shows what differs.
	common reflect.Value
}

// fields writes those of a struct, beside its defaults and what the file gives.
func (e *effective) fields(indent string, value, fallback reflect.Value, given map[string]any) {
	for field, member := range value.Fields() {
		before := fallback.FieldByIndex(field.Index)
		name := jsonName(field)
		switch {
		case field.Type == reflect.TypeFor[[]Condition]():
			e.sections(member.Interface().([]Condition), before.Interface().([]Condition), given)
		case name == "-", !field.IsExported():
		case field.Type == reflect.TypeFor[metav1.TypeMeta](): // which every file has
			e.fields(indent, member, before, nil)
		case field.Anonymous:
			e.fields(indent, member, before, given)
		case name == debounceField && indent != "":
			inner, _ := given[name].(map[string]any)
			e.debounce(member, before, inner)
		case isSection(field.Type):
			inner, _ := given[name].(map[string]any)
			fmt.Fprintf(&e.text, "%s%s:\n", indent, name)
			e.fields(indent+"  ", member, before, inner)
		default:
			_, isSet := given[name]
			e.leaf(indent, name, member, before, isSet)
		}
	}
}

// debounce writes of a section's what differs from that of all conditions, or what the file
// sets.
func (e *effective) debounce(value, fallback reflect.Value, given map[string]any) {
	heading := fmt.Sprintf("  %s:\n", debounceField)
	for field, member := range value.Fields() {
		name := jsonName(field)
		if _, isSet := given[name]; isSet || e.flow(member) != e.flow(e.common.FieldByIndex(field.Index)) {
			e.text.WriteString(heading)
			e.leaf("    ", name, member, fallback.FieldByIndex(field.Index), isSet)
			heading = ""
		}
	}
}

// sections writes those of the conditions.
func (e *effective) sections(conditions, defaults []Condition, given map[string]any) {
	for i, condition := range conditions[:len(defaults)] {
		inner, _ := given[condition.Field].(map[string]any)
		fmt.Fprintf(&e.text, "\n%s:\n", condition.Field)
		e.fields("  ", reflect.ValueOf(condition.Section).Elem(), reflect.ValueOf(defaults[i].Section).Elem(), inner)
	}
	e.text.WriteString("\n")
	_, isSet := given[reportedField]
	e.leaf("", reportedField, reflect.ValueOf(reportedIn(conditions)), reflect.ValueOf([]*Reported(nil)), isSet)
}

// leaf writes a field that has no fields of its own, or a list, and marks it if
// the file sets it.
func (e *effective) leaf(indent, name string, value, fallback reflect.Value, isSet bool) {
	mark, now, before := "", e.flow(value), e.flow(fallback)
	switch {
	case isSet && now == before:
		mark = "  # set; the default too"
	case isSet && isList(value.Type()):
		mark = fmt.Sprintf("  # set; %d by default", fallback.Len())
	case isSet:
		mark = "  # set; default: " + before
	}
	if !isList(value.Type()) || value.Len() == 0 {
		fmt.Fprintf(&e.text, "%s%s: %s%s\n", indent, name, now, mark)
		return
	}
	fmt.Fprintf(&e.text, "%s%s:%s\n", indent, name, mark)
	for i := range value.Len() {
		fmt.Fprintf(&e.text, "%s- %s\n", indent, e.flow(value.Index(i)))
	}
}

// flow returns a value in one line.
func (e *effective) flow(value reflect.Value) string {
	var parts []string
	switch {
	case value.Kind() == reflect.Slice:
		for i := range value.Len() {
			parts = append(parts, e.flow(value.Index(i)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case value.Kind() == reflect.Map:
		for _, key := range slices.SortedFunc(slices.Values(value.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
			parts = append(parts, e.flow(key)+": "+e.flow(value.MapIndex(key)))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case value.Kind() == reflect.Pointer, value.Kind() == reflect.Interface && !value.IsNil():
		return e.flow(value.Elem())
	case isSection(value.Type()):
		return "{" + strings.Join(e.members(value), ", ") + "}"
	}
	text, err := yaml.Marshal(value.Interface())
	if err != nil && e.err == nil {
		e.err = err
	}
	return strings.TrimSpace(string(text))
}

// members returns the fields of a struct, each in one line.
func (e *effective) members(value reflect.Value) (parts []string) {
	for field, member := range value.Fields() {
		switch {
		case jsonName(field) == "-", member.IsZero() && strings.HasSuffix(field.Tag.Get("json"), ",omitempty"):
		case field.Anonymous:
			parts = append(parts, e.members(member)...)
		default:
			parts = append(parts, jsonName(field)+": "+e.flow(member))
		}
	}
	return parts
}
