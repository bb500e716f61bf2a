package config

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// member is a field of a file. Its value is that of one configuration.
type member struct {
	name  string
	value reflect.Value
	// bounds is the tag range:"1..32", or range:"0,1m..24h" where anything below 1m but 0 is refused.
	// Empty: the field has any value of its type.
	bounds string
}

// members returns the fields that a struct has in a file, in the order of its type, and the sections
// of conditions. Reading, checking, comparing and showing a configuration all go by this list.
func members(of reflect.Value) (all []member) {
	for f, value := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		bounds := f.Tag.Get("range")
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
			if s, isSampling := of.Interface().(Sampling); isSampling && bounds != "" {
				bounds = s.MinInterval.String() + bounds
			}
			all = append(all, member{name, value, bounds})
		}
	}
	return all
}

// beyond says which values the field can have, if it has another one; empty: it has one of them.
func (m member) beyond() string {
	bounds, orZero := strings.CutPrefix(m.bounds, "0,")
	low, high, _ := strings.Cut(bounds, "..")
	text, _ := json.Marshal(m.value.Interface())
	is := size(strings.Trim(string(text), `"`))
	switch {
	case high == "" || is >= size(low) && is <= size(high) || orZero && is == 0:
		return ""
	case orZero:
		low = "0 (never), or " + low
	}
	return "must be " + low + " to " + high
}

// size is how large a number, an amount or a duration is, in its base unit.
func size(text string) float64 {
	if d, err := time.ParseDuration(text); err == nil {
		return d.Seconds()
	}
	q, _ := resource.ParseQuantity(text)
	return q.AsApproximateFloat64()
}
