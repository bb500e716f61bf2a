package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
)

// member is a field of a file. Its value is that of one configuration.
type member struct {
	name  string
	value reflect.Value
	tag   reflect.StructTag
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
					all = append(all, member{c.Field, reflect.ValueOf(c.Section).Elem(), ""})
				}
			}
		case f.Anonymous:
			all = append(all, members(value)...)
		case name != "-" && f.IsExported():
			all = append(all, member{name, value, f.Tag})
		}
	}
	return all
}

// isSection reports whether a file writes a type as a section with fields. Durations and amounts
// are structs that a file writes as a single value.
func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !t.Implements(reflect.TypeFor[json.Marshaler]())
}

// Bound says which values a field can have. The chart has the same list, in bounds.json.
type Bound struct {
	// Field is the path of the field: memory.period, or conditions[].period in each entry of
	// a list.
	Field string `json:"field"`
	// Low and High are the lowest and the highest value: a number, a duration, or an amount
	// of memory.
	Low  string `json:"low"`
	High string `json:"high"`
	// OrZero: 0 is allowed too, and means never.
	OrZero bool `json:"orZero,omitempty"`
}

// String says which values are allowed.
func (b Bound) String() string {
	if b.OrZero {
		return "must be 0 (never), or " + b.Low + " to " + b.High
	}
	return "must be " + b.Low + " to " + b.High
}

// bound returns that of a member, from its tag: range:"1..32", or range:"0,1m..24h" where
// anything below 1m but 0 is refused. How short a period can be is the section's, if it is of
// one.
func (m member) bound(of reflect.Value) (b Bound, found bool) {
	text, found := m.tag.Lookup("range")
	text, b.OrZero = strings.CutPrefix(text, "0,")
	b.Low, b.High, _ = strings.Cut(text, "..")
	if section, isOne := of.Addr().Interface().(Section); isOne && m.name == periodField {
		b.Low = section.MinInterval().String()
	}
	return b, found
}

// check returns what is wrong with the value of a member of a struct, by its tag.
func (m member) check(of reflect.Value, at *field.Path) field.ErrorList {
	b, found := m.bound(of)
	value := size(m.value.Interface())
	if !found || value >= size(b.Low) && value <= size(b.High) || b.OrZero && value == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, unquoted(m.value), b.String())}
}

// Bounds returns the bounds of all fields that have some.
func Bounds() []Bound {
	cfg := Default()
	cfg.Reported = []*Reported{defaultReported()}
	return boundsOf("", reflect.ValueOf(cfg).Elem())
}

func boundsOf(prefix string, of reflect.Value) (all []Bound) {
	for _, m := range members(of) {
		b, found := m.bound(of)
		b.Field = prefix + m.name
		switch reported, isReported := m.value.Interface().([]*Reported); {
		case found:
			all = append(all, b)
		case isReported:
			all = append(all, boundsOf(b.Field+"[].", reflect.ValueOf(reported[0]).Elem())...)
		case isSection(m.value.Type()):
			all = append(all, boundsOf(b.Field+".", m.value)...)
		}
	}
	return all
}

// size is how large a value of a field is, or the text of one.
func size(value any) float64 {
	switch value := value.(type) {
	case decide.Duration:
		return value.Seconds()
	case resource.Quantity:
		return value.AsApproximateFloat64()
	case int:
		return float64(value)
	case float64:
		return value
	case string:
		if d, err := time.ParseDuration(value); err == nil {
			return d.Seconds()
		}
		q, _ := resource.ParseQuantity(value)
		return q.AsApproximateFloat64()
	}
	return 0
}

// unquoted is a value as errors and comparisons show it.
func unquoted(value reflect.Value) any {
	switch value := value.Interface().(type) {
	case resource.Quantity:
		return value.String()
	case fmt.Stringer:
		return value.String()
	default:
		return value
	}
}
