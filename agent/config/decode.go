package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes"
)

// decoder reads a file over the defaults, and collects unknown fields, wrong types, and values out
// of their bounds.
type decoder struct {
	errs field.ErrorList
	// debounce is what the file says of all conditions.
	debounce any
}

// value reads one. What is null is as if it were not there.
func (d *decoder) value(given any, into reflect.Value, at *field.Path) {
	if section, isOne := into.Addr().Interface().(Section); isOne {
		// Errors in the debounce of all conditions are reported once, where the file has it.
		new(decoder).value(d.debounce, reflect.ValueOf(&section.Common().Debounce).Elem(), nil)
	}
	fields, hasFields := given.(map[string]any)
	items, isList := given.([]any)
	text, _ := json.Marshal(given) // it was JSON
	// Durations and amounts are structs that a file writes as a single value.
	switch isStruct := into.Kind() == reflect.Struct && !into.Type().Implements(reflect.TypeFor[json.Marshaler]()); {
	case given == nil:
	case (isStruct || into.Kind() == reflect.Map) && !hasFields:
		d.refuse(at, given, "must be a section with fields")
	case into.Kind() == reflect.Slice && !isList:
		d.refuse(at, given, "must be a list")
	case isStruct:
		d.section(fields, into, at)
	case isList && into.Kind() == reflect.Slice:
		list := reflect.MakeSlice(into.Type(), len(items), len(items))
		for i, item := range items {
			entry := list.Index(i)
			if entry.Type() == reflect.TypeFor[*Reported]() {
				entry.Set(reflect.ValueOf(defaultReported()))
				entry = entry.Elem()
			}
			d.value(item, entry, at.Index(i))
		}
		into.Set(list)
	case json.Unmarshal(text, into.Addr().Interface()) != nil:
		d.refuse(at, given, allowed(into.Type(), text))
	}
}

// section reads the fields of a struct.
func (d *decoder) section(given map[string]any, into reflect.Value, at *field.Path) {
	all := members(into)
	for _, m := range all {
		value, here, before := given[m.name], at.Child(m.name), len(d.errs)
		d.value(value, m.value, here)
		if allowed := m.beyond(); value != nil && len(d.errs) == before && allowed != "" {
			d.refuse(here, value, allowed)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.ContainsFunc(all, func(m member) bool { return m.name == name }) {
			d.errs = append(d.errs, field.Forbidden(at.Child(name), "unknown field"+suggestion(name, all)))
		}
	}
}

func (d *decoder) refuse(at *field.Path, given any, allowed string) {
	d.errs = append(d.errs, field.Invalid(at, given, allowed))
}

// allowed says which values fit a type.
func allowed(t reflect.Type, given []byte) string {
	text := fmt.Sprintf("text; put it in quotes: \"%s\"", given)
	return "must be " + cmp.Or(map[reflect.Type]string{
		reflect.TypeFor[decide.Duration]():   "a duration such as 30s, 5m or 1h",
		reflect.TypeFor[resource.Quantity](): "an amount such as 100Mi or 2Gi",
		reflect.TypeFor[probes.Level]():      "Degraded or Critical",
		reflect.TypeFor[bool]():              "true or false",
		reflect.TypeFor[int]():               "a whole number",
		reflect.TypeFor[float64]():           "a number",
	}[t], text)
}

// suggestion names the field that begins and ends like an unknown one, with at most two letters
// between that differ; empty: none does.
func suggestion(name string, all []member) string {
	for _, m := range all {
		a, b := strings.ToLower(m.name), strings.ToLower(name)
		least, most := min(len(a), len(b)), max(len(a), len(b))
		for begin := range least + 1 {
			end := max(0, most-begin-2)
			if a[:begin] == b[:begin] && end <= least-begin && a[len(a)-end:] == b[len(b)-end:] {
				return "; did you mean " + m.name + "?"
			}
		}
	}
	return ""
}
