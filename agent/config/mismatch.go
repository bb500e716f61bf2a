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

// mismatches returns an error for each value of the JSON that does not fit the
// type of its field, with its path and what is allowed. The decoder itself stops at
// the first, and names neither the place in a list nor the field of a duration.
func mismatches(data json.RawMessage, t reflect.Type, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case isSection(t):
		var members map[string]json.RawMessage
		if json.Unmarshal(data, &members) != nil {
			return field.ErrorList{field.Invalid(at, shown(data), "must be a section with fields")}
		}
		for member := range t.Fields() {
			name := jsonName(member)
			if member.Anonymous && name == "" {
				errs = append(errs, mismatches(data, member.Type, at)...)
			} else if value, found := members[name]; found {
				errs = append(errs, mismatches(value, member.Type, at.Child(name))...)
			}
		}
	case isList(t):
		var items []json.RawMessage
		if json.Unmarshal(data, &items) != nil {
			return field.ErrorList{field.Invalid(at, shown(data), "must be a list")}
		}
		for i, item := range items {
			errs = append(errs, mismatches(item, t.Elem(), at.Index(i))...)
		}
	case t.Kind() == reflect.Map:
		var members map[string]json.RawMessage
		if json.Unmarshal(data, &members) != nil {
			return field.ErrorList{field.Invalid(at, shown(data), "must be a section with fields")}
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			errs = append(errs, mismatches(members[name], t.Elem(), at.Key(name))...)
		}
	default:
		if json.Unmarshal(data, reflect.New(t).Interface()) != nil {
			errs = append(errs, field.Invalid(at, shown(data), allowed(t, data)))
		}
	}
	return errs
}

// shown is a value as an error shows it.
func shown(data json.RawMessage) any {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return string(data)
	}
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

// jsonName is the name of a field in the file; empty for one whose own fields
// stand in its place.
func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// isSection reports whether a type has fields of its own in the file: a struct
// that is not written as a single value, as durations and amounts are.
func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !t.Implements(reflect.TypeFor[json.Marshaler]())
}

func isList(t reflect.Type) bool { return t.Kind() == reflect.Slice }
