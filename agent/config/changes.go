package config

import (
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/taintlet/taintlet/agent/decide"
)

// maxChanges is how many fields Changes names, and maxValue how long a value of one is,
// in bytes.
const (
	maxChanges = 8
	maxValue   = 100
)

// Changes says which fields differ between two configurations of one Schema, each with
// its value before and after, such as "memory.availablePercent 5 → 6". Of many it names
// the first and says how many more there are.
func Changes(before, after *Config) string {
	d := &differences{was: reflect.ValueOf(before.Debounce), is: reflect.ValueOf(after.Debounce)}
	d.fields("", reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem())
	switch n := len(d.found); {
	case n == 0:
		return "no field differs"
	case n > maxChanges:
		return fmt.Sprintf("%s and %d more", strings.Join(d.found[:maxChanges], ", "), n-maxChanges)
	}
	return strings.Join(d.found, ", ")
}

// differences collects fields that differ, in the order of the types.
type differences struct {
	effective
	found []string
	// was and is are the debounce of all conditions. A section whose own followed it is not
	// told.
	was, is reflect.Value
}

// fields compares those of two structs.
func (d *differences) fields(path string, before, after reflect.Value) {
	for field, now := range after.Fields() {
		was, name := before.FieldByIndex(field.Index), jsonName(field)
		switch {
		case field.Type == reflect.TypeFor[[]Condition]():
			d.sections(was.Interface().([]Condition), now.Interface().([]Condition))
		case name == "-", name == overridesField, !field.IsExported(), field.Type == reflect.TypeFor[metav1.TypeMeta]():
		case field.Type == reflect.TypeFor[[]decide.Rule]():
			d.rules(name, was.Interface().([]decide.Rule), now.Interface().([]decide.Rule))
		case field.Anonymous:
			d.fields(path, was, now)
		case isSection(field.Type):
			d.fields(path+name+".", was, now)
		case after.Type() == d.is.Type() && path != debounceField+"." &&
			d.flow(was) == d.flow(d.was.FieldByIndex(field.Index)) && d.flow(now) == d.flow(d.is.FieldByIndex(field.Index)):
		default:
			d.compare(path+name, d.flow(was), d.flow(now))
		}
	}
}

func (d *differences) sections(before, after []Condition) {
	was, is := byPath(before), byPath(after)
	for _, condition := range after {
		path := condition.path()
		if old, found := was[path]; found {
			d.fields(path+".", reflect.ValueOf(old.Section).Elem(), reflect.ValueOf(condition.Section).Elem())
		} else {
			d.compare(path, "none", d.flow(reflect.ValueOf(condition.Section)))
		}
	}
	for _, condition := range before {
		if _, found := is[condition.path()]; !found {
			d.compare(condition.path(), d.flow(reflect.ValueOf(condition.Section)), "none")
		}
	}
}

// path is where a condition stands in a file. One that others report is named by its type:
// in which order a file has these does not matter.
func (c Condition) path() string {
	if r, isReported := c.Section.(*Reported); isReported {
		return reportedField + "[" + r.Type + "]"
	}
	return c.Field
}

func byPath(conditions []Condition) map[string]Condition {
	all := make(map[string]Condition, len(conditions))
	for _, c := range conditions {
		all[c.path()] = c
	}
	return all
}

// rules compares the taints of each condition and level: in which order a file has its
// rules does not matter.
func (d *differences) rules(name string, before, after []decide.Rule) {
	id := func(r decide.Rule) string {
		return fmt.Sprintf("%s[%s]", name, strings.Join(append([]string{string(r.Condition), r.Level.String()}, r.Reasons...), " "))
	}
	taintsOf := func(rules []decide.Rule) map[string]string {
		all := map[string]string{}
		for _, r := range rules {
			if !switchesOff(r) {
				all[id(r)] = strings.TrimSpace(r.Taint.Pair().With(r.Taint.Value+r.Taint.ValueFrom).String() + " " + string(r.Clear))
			}
		}
		return all
	}
	was, is, told := taintsOf(before), taintsOf(after), map[string]bool{}
	for _, r := range append(before[:len(before):len(before)], after...) {
		if !told[id(r)] {
			told[id(r)] = true
			d.compare(id(r), orNone(was[id(r)]), orNone(is[id(r)]))
		}
	}
}

func orNone(taint string) string {
	if taint == "" {
		return "none"
	}
	return taint
}

func (d *differences) compare(path, before, after string) {
	if before != after {
		d.found = append(d.found, fmt.Sprintf("%s %s → %s", path, shortValue(before), shortValue(after)))
	}
}

// shortValue cuts a value of a list, or of a text, that is long.
func shortValue(text string) string {
	if len(text) <= maxValue {
		return text
	}
	return strings.ToValidUTF8(text[:maxValue], "") + "…"
}
