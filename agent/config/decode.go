package config

import (
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

// decoder reads a file over the defaults, and collects what is wrong with it: fields that
// there are not, types, and values that are out of their bounds.
type decoder struct {
	errs field.ErrorList
	// isMistyped: a value has a wrong type, so its field has still the default.
	isMistyped bool
	// debounce is what the file says of all conditions.
	debounce json.RawMessage
}

// value reads one. What is null is as if it were not there.
func (d *decoder) value(data json.RawMessage, into reflect.Value, at *field.Path) {
	var fields map[string]json.RawMessage
	var items []json.RawMessage
	isDocument := isSection(into.Type()) || into.Kind() == reflect.Map
	switch {
	case string(data) == "null":
	case isDocument && json.Unmarshal(data, &fields) != nil:
		d.mistyped(at, data, "must be a section with fields")
	case into.Kind() == reflect.Slice && json.Unmarshal(data, &items) != nil:
		d.mistyped(at, data, "must be a list")
	case isSection(into.Type()):
		d.section(fields, into, at)
	case into.Kind() == reflect.Slice:
		list := reflect.MakeSlice(into.Type(), len(items), len(items))
		for i, item := range items {
			d.value(item, d.entry(list.Index(i)), at.Index(i))
		}
		into.Set(list)
	case json.Unmarshal(data, into.Addr().Interface()) != nil:
		d.mistyped(at, data, allowed(into.Type(), data))
	}
}

// entry returns an entry of a list, with its defaults.
func (d *decoder) entry(of reflect.Value) reflect.Value {
	if of.Type() != reflect.TypeFor[*Reported]() {
		return of
	}
	section := defaultReported()
	d.inherit(section)
	of.Set(reflect.ValueOf(section))
	return of.Elem()
}

// section reads the fields of a struct.
func (d *decoder) section(given map[string]json.RawMessage, into reflect.Value, at *field.Path) {
	all := members(into)
	for _, m := range all {
		data, found := given[m.name]
		if m.name == debounceField && at == nil {
			d.debounce = data
		} else if section, isOne := m.value.Addr().Interface().(Section); isOne {
			d.inherit(section)
		}
		if before := len(d.errs); found {
			if d.value(data, m.value, at.Child(m.name)); len(d.errs) == before {
				d.errs = append(d.errs, m.check(into, at.Child(m.name))...)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.ContainsFunc(all, func(m member) bool { return m.name == name }) {
			d.errs = append(d.errs, field.Forbidden(at.Child(name), "unknown field"+suggestion(name, all)))
		}
	}
}

// inherit starts a section with the debounce that the file sets for all conditions. Errors in
// that debounce are reported once, where the file has it.
func (d *decoder) inherit(section Section) {
	if d.debounce != nil {
		new(decoder).value(d.debounce, reflect.ValueOf(&section.Common().Debounce).Elem(), field.NewPath(debounceField))
	}
}

func (d *decoder) mistyped(at *field.Path, data json.RawMessage, allowed string) {
	d.isMistyped = true
	if at == nil {
		at = field.NewPath("the file")
	}
	d.errs = append(d.errs, field.Invalid(at, shown(data), allowed))
}

// shown is a value as an error shows it.
func shown(data json.RawMessage) any {
	var value any
	_ = json.Unmarshal(data, &value) // it was JSON
	return value
}

// allowed says which values fit a type.
func allowed(t reflect.Type, data json.RawMessage) string {
	switch t {
	case reflect.TypeFor[decide.Duration]():
		return "must be a duration such as 30s, 5m or 1h"
	case reflect.TypeFor[resource.Quantity]():
		return "must be an amount such as 100Mi or 2Gi"
	case reflect.TypeFor[probes.Level]():
		return fmt.Sprintf("must be %s or %s", probes.Degraded, probes.Critical)
	}
	switch t.Kind() {
	case reflect.Bool:
		return "must be true or false"
	case reflect.Int:
		return "must be a whole number"
	case reflect.Float64:
		return "must be a number"
	default:
		return fmt.Sprintf("must be text; put it in quotes: \"%s\"", data)
	}
}

// maxTypo is the largest distance, in letters, between a misspelt field and the field that is
// suggested.
const maxTypo = 2

// replaced are the fields of former files, and their replacements.
func replaced() map[string]string {
	return map[string]string{
		"clearFactor": "debounce.clearFactor", "softRules": "earlyPercent", "standInPrefix": "keyPrefix", "autoscaler": "keys: Own and keyPrefix",
	}
}

// suggestion names the replacement of an unknown field, or the field with the most similar name;
// empty: no name is similar.
func suggestion(name string, all []member) (text string) {
	if now, found := replaced()[name]; found {
		return "; replaced by " + now
	}
	least := maxTypo + 1
	for _, m := range all {
		if far := distance(strings.ToLower(m.name), strings.ToLower(name)); far < least {
			least, text = far, "; did you mean "+m.name+"?"
		}
	}
	return text
}

// distance is the Levenshtein distance of two names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := min(row[j]+1, row[j+1]+1, before+1)
			if a[i] == b[j] {
				next = min(next, before)
			}
			before, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
