package config

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"

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
	was, is, told := leavesOf(before), leavesOf(after), map[string]bool{}
	var changes []string
	for _, path := range append(was.paths, is.paths...) {
		old, now, subject := was.value(path), is.value(path), path
		if entry, _, isOfEntry := strings.Cut(path, "]."); isOfEntry && (old == none || now == none) {
			subject = entry // one field tells that the entry came or went
		}
		if _, name, isOfSection := strings.Cut(path, "."+debounceField+"."); isOfSection {
			if common := debounceField + "." + name; old == was.value(common) && now == is.value(common) {
				continue // the section has followed that of all conditions
			}
		}
		if old != now && !told[subject] {
			changes = append(changes, fmt.Sprintf("%s %s → %s", path, shortValue(old), shortValue(now)))
			told[subject] = true
		}
	}
	switch n := len(changes); {
	case n == 0:
		return "no field differs"
	case n > maxChanges:
		return fmt.Sprintf("%s and %d more", strings.Join(changes[:maxChanges], ", "), n-maxChanges)
	}
	return strings.Join(changes, ", ")
}

// none is the value of a field that a configuration does not have.
const none = "none"

// leaves are the values of a configuration by the paths of their fields.
type leaves struct {
	paths  []string
	values map[string]string
}

func leavesOf(c *Config) *leaves {
	l := &leaves{values: map[string]string{}}
	l.add("", reflect.ValueOf(c).Elem())
	return l
}

// value returns that of a path.
func (l *leaves) value(path string) string { return cmp.Or(l.values[path], none) }

func (l *leaves) set(path, value string) { l.paths, l.values[path] = append(l.paths, path), value }

// add adds the fields of a struct. In which order a file has its rules, and the conditions that
// others report, does not matter.
func (l *leaves) add(prefix string, of reflect.Value) {
	for _, m := range members(of) {
		path := prefix + m.name
		switch value := m.value.Interface().(type) {
		case []Override:
		case []decide.Rule:
			for _, r := range value {
				l.addRule(path, r)
			}
		case []*Reported:
			for _, r := range value {
				l.add(fmt.Sprintf("%s[%s].", path, r.Type), reflect.ValueOf(r).Elem())
			}
		default:
			if isSection(m.value.Type()) {
				l.add(path+".", m.value)
			} else {
				l.set(path, flow(m.value))
			}
		}
	}
}

func (l *leaves) addRule(list string, r decide.Rule) {
	if !switchesOff(r) {
		of := append([]string{string(r.Condition), r.Level.String()}, r.Reasons...)
		if r.IsGraver() {
			of = append(of, strconv.Itoa(r.Severity))
		}
		l.set(fmt.Sprintf("%s[%s]", list, strings.Join(of, " ")), strings.TrimSpace(r.Taint.Pair().With(r.Taint.Value).String()+" "+string(r.Clear)))
	}
}

// shortValue cuts a value of a list, or of a text, that is long.
func shortValue(text string) string {
	if len(text) <= maxValue {
		return text
	}
	return strings.ToValidUTF8(text[:maxValue], "") + "…"
}
