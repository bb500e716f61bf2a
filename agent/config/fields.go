package config

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Names of fields that more than one place knows.
const (
	debounceField  = "debounce"
	rulesField     = "rules"
	reportedField  = "conditions"
	overridesField = "overrides"
	selectorField  = "nodeSelector" // of an override: to which Nodes it applies
)

// member is a field of a file. Its value is that of one configuration.
type member struct {
	name  string
	value reflect.Value
	bound bound // the zero value: it has none
}

// members returns the fields that a struct has in a file, in the order of its type, and those
// of the sections of the conditions. Reading, checking, comparing and showing a configuration
// all go by this list.
func members(of reflect.Value) (all []member) {
	for f, value := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Type == reflect.TypeFor[[]Condition]():
			for _, c := range value.Interface().([]Condition) {
				if _, isReported := c.Section.(*Reported); !isReported {
					all = append(all, member{name: c.Field, value: reflect.ValueOf(c.Section).Elem()})
				}
			}
		case f.Anonymous:
			all = append(all, members(value)...)
		case name != "-" && f.IsExported():
			all = append(all, member{name, value, boundOf(f.Tag.Get("range"), of.Interface())})
		}
	}
	return all
}

// isSection reports whether a file writes a type as a section with fields. Durations and amounts
// are structs that a file writes as a single value.
func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !t.Implements(reflect.TypeFor[json.Marshaler]())
}

// bound says which values a field can have, from a tag of it: range:"1..32", or range:"0,1m..24h"
// where anything below 1m but 0 is refused. The lower bound of a period is the MinInterval of its
// Sampling.
type bound struct {
	low, high string
	orZero    bool
}

func boundOf(tag string, of any) (b bound) {
	tag, b.orZero = strings.CutPrefix(tag, "0,")
	b.low, b.high, _ = strings.Cut(tag, "..")
	if s, isSampling := of.(Sampling); isSampling {
		b.low = s.MinInterval.String()
	}
	return b
}

// String says which values are allowed.
func (b bound) String() string {
	if b.orZero {
		return "must be 0 (never), or " + b.low + " to " + b.high
	}
	return "must be " + b.low + " to " + b.high
}

// allows reports whether the field can have the value.
func (b bound) allows(value reflect.Value) bool {
	text, _ := json.Marshal(value.Interface())
	is := size(strings.Trim(string(text), `"`))
	return b.high == "" || is >= size(b.low) && is <= size(b.high) || b.orZero && is == 0
}

// size is how large a number, an amount or a duration is, in its base unit.
func size(text string) float64 {
	if d, err := time.ParseDuration(text); err == nil {
		return d.Seconds()
	}
	q, _ := resource.ParseQuantity(text)
	return q.AsApproximateFloat64()
}
