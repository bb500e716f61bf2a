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
// type of its field, with its path and what is allowed, and the JSON without these fields. The
// decoder itself stops at the first, and names neither the place in a list nor the field of a
// duration.
func mismatches(data json.RawMessage, t reflect.Type, at *field.Path) (fitting json.RawMessage, errs field.ErrorList) {
	var members map[string]json.RawMessage
	var items []json.RawMessage
	switch isObject := isSection(t) || t.Kind() == reflect.Map; {
	case isObject && json.Unmarshal(data, &members) != nil:
		return data, field.ErrorList{field.Invalid(at, shown(data), "must be a section with fields")}
	case isList(t) && json.Unmarshal(data, &items) != nil:
		return data, field.ErrorList{field.Invalid(at, shown(data), "must be a list")}
	case isSection(t):
		errs = mismatchesOf(members, t, at)
		fitting, _ = json.Marshal(members) // it was JSON
		return fitting, errs
	case isObject:
		for _, name := range slices.Sorted(maps.Keys(members)) {
			_, wrong := mismatches(members[name], t.Elem(), at.Key(name))
			errs = append(errs, wrong...)
		}
	case isList(t):
		for i, item := range items {
			_, wrong := mismatches(item, t.Elem(), at.Index(i))
			errs = append(errs, wrong...)
		}
	case json.Unmarshal(data, reflect.New(t).Interface()) != nil:
		errs = field.ErrorList{field.Invalid(at, shown(data), allowed(t, data))}
	}
	return data, errs
}

// mismatchesOf returns those of the fields of a section, which it removes from them.
func mismatchesOf(members map[string]json.RawMessage, t reflect.Type, at *field.Path) (errs field.ErrorList) {
	for _, member := range reflect.VisibleFields(t) {
		name := jsonName(member)
		value, found := members[name]
		if !found {
			continue
		}
		inner, wrong := mismatches(value, member.Type, at.Child(name))
		if members[name] = inner; len(wrong) > 0 && !isSection(member.Type) {
			delete(members, name)
		}
		errs = append(errs, wrong...)
	}
	return errs
}

// maxTypo is how many letters a field's name may be from one that there is, for that to be
// suggested.
const maxTypo = 2

// suggestion names a field that there is: the one whose name is nearest to that of a field, by
// its path below a type; empty: none is near. more are the fields that a file has beside those
// of the type.
func suggestion(t reflect.Type, name string, more ...string) string {
	first, rest, isDeep := strings.Cut(name, ".")
	first, _, isEntry := strings.Cut(first, "[")
	var names []string
	for _, member := range reflect.VisibleFields(t) {
		switch known := jsonName(member); {
		case isDeep && known == first && isEntry:
			return suggestion(member.Type.Elem(), rest)
		case isDeep && known == first:
			return suggestion(member.Type, rest)
		case known != "" && known != "-":
			names = append(names, known)
		}
	}
	best, least := "", maxTypo+1
	for _, known := range append(names, more...) {
		if far := distance(strings.ToLower(known), strings.ToLower(first)); far < least {
			best, least = known, far
		}
	}
	return best
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
