package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/probes"
)

// treeOf returns the fields of a struct as a file has them.
func treeOf(of any) (tree map[string]any) {
	fields := map[string]any{}
	for _, m := range members(reflect.ValueOf(of).Elem()) {
		fields[m.name] = m.value.Interface()
	}
	text, _ := json.Marshal(fields) // it has no type that cannot be written
	_ = json.Unmarshal(text, &tree)
	return tree
}

// inner returns the fields of a section of a tree; nil: it has none.
func inner(tree map[string]any, section string) map[string]any {
	fields, _ := tree[section].(map[string]any)
	return fields
}

// Effective writes the whole of a configuration as a file. A comment marks each field that the
// file of the configuration sets, or its override (see For), with its default. Of the debounce of
// all conditions, a section shows what differs.
func (s Schema) Effective(cfg *Config) string {
	is, given := treeOf(cfg), maps.Clone(cfg.given)
	delete(given, "apiVersion") // which every file has
	delete(given, "kind")
	for section := range is {
		isSet, common := inner(inner(given, section), debounceField), inner(is, debounceField)
		maps.DeleteFunc(inner(inner(is, section), debounceField), func(name string, value any) bool { return isSet[name] == nil && value == common[name] })
	}
	return lines("", is, treeOf(s.Default()), given)
}

// lines writes fields as YAML, beside their defaults and what the file gives.
func lines(indent string, of, defaults, given map[string]any) (text string) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		now, before, mark := of[name], defaults[name], ""
		list, isList := now.([]any)
		switch {
		case given[name] == nil:
		case reflect.DeepEqual(now, before):
			mark = "  # set; the default too"
		case isList:
			mark = fmt.Sprintf("  # set; %d by default", len(before.([]any)))
		default:
			mark = "  # set; default: " + flow(before)
		}
		if section, isSection := now.(map[string]any); !isSection && len(list) == 0 {
			text += indent + name + ": " + flow(now) + mark + "\n"
		} else if inside := lines(indent+"  ", section, inner(defaults, name), inner(given, name)); inside != "" {
			text += indent + name + ":\n" + inside
		} else if len(list) > 0 {
			text += indent + name + ":" + mark + "\n"
		}
		for _, entry := range list {
			text += indent + "- " + flow(entry) + "\n"
		}
	}
	return text
}

// flow returns a value of a tree in one line of YAML.
func flow(value any) string {
	var parts []string
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			parts = append(parts, flow(key)+": "+flow(value[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		for _, entry := range value {
			parts = append(parts, flow(entry))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	text, _ := yaml.Marshal(value)
	return strings.TrimSpace(string(text))
}

// maxChanges is how many fields Changes names, and maxValue how long a value of one is,
// in bytes.
const (
	maxChanges = 8
	maxValue   = 100
)

// none is the value of a field that a configuration does not have.
const none = "none"

// Changes lists the fields that differ between two configurations of one Schema, each with its
// value before and after, such as "memory.availablePercent 5 → 6". If many differ, it lists the
// first ones and the number of the others.
func Changes(before, after *Config) string {
	was, is := before.leaves(after), after.leaves(before)
	all, changes := maps.Clone(was), []string(nil)
	maps.Copy(all, is)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		old, now := cmp.Or(was[path], none), cmp.Or(is[path], none)
		_, name, isOfSection := strings.Cut(path, "."+debounceField+".")
		common := debounceField + "." + name
		if hasFollowed := isOfSection && old == was[common] && now == is[common]; old != now && !hasFollowed {
			changes = append(changes, fmt.Sprintf("%s %s → %s", path, shortValue(old), shortValue(now)))
		}
	}
	if n := len(changes); n > maxChanges {
		return fmt.Sprintf("%s and %d more", strings.Join(changes[:maxChanges], ", "), n-maxChanges)
	}
	return cmp.Or(strings.Join(changes, ", "), "no field differs")
}

// leaves returns the values of a configuration by the paths of their fields. In which order it has
// its rules, and the conditions that others report, does not matter. Of a condition that another
// configuration does not have, it has the type only.
func (c *Config) leaves(other *Config) map[string]string {
	tree, all := treeOf(c), map[string]string{}
	delete(tree, overridesField)
	for _, r := range c.Reported {
		whole := treeOf(r)
		if _, found := other.Condition(probes.Condition(r.Type)); !found {
			whole = map[string]any{"type": r.Type}
		}
		tree[fmt.Sprintf("%s[%s]", reportedField, r.Type)] = whole
	}
	for _, r := range c.Rules {
		of := append([]string{string(r.Condition), r.Level.String()}, r.Reasons...)
		if r.IsGraver() {
			of = append(of, strconv.Itoa(r.Severity))
		}
		if !switchesOff(r) {
			all[fmt.Sprintf("%s[%s]", rulesField, strings.Join(of, " "))] = strings.TrimSpace(r.Taint.Pair().With(r.Taint.Value).String() + " " + string(r.Clear))
		}
	}
	delete(tree, rulesField)
	delete(tree, reportedField)
	addLeaves(all, "", tree)
	return all
}

func addLeaves(all map[string]string, prefix string, tree map[string]any) {
	for name, value := range tree {
		if section, isSection := value.(map[string]any); isSection {
			addLeaves(all, prefix+name+".", section)
		} else {
			all[prefix+name] = flow(value)
		}
	}
}

// shortValue cuts a value of a list, or of a text, that is long.
func shortValue(text string) string {
	if len(text) <= maxValue {
		return text
	}
	return strings.ToValidUTF8(text[:maxValue], "") + "…"
}
