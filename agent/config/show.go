package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
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

// tree returns the fields of a configuration as a file has them. Of the debounce of all conditions,
// a section has what differs.
func (c *Config) tree() map[string]any {
	tree := treeOf(c)
	reported, _ := tree["conditions"].([]any)
	for _, section := range slices.AppendSeq(reported, maps.Values(tree)) {
		fields, _ := section.(map[string]any)
		maps.DeleteFunc(inner(fields, "debounce"), func(name string, value any) bool { return value == inner(tree, "debounce")[name] })
	}
	return tree
}

// Effective writes the whole of a configuration as a file. Comments before it name the fields that
// differ from the defaults.
func (s Schema) Effective(cfg *Config) (text string) {
	if all := differences(nil, s.Default().named(), cfg.named()); len(all) > 0 {
		text = "# It differs from the default:\n# " + strings.Join(all, "\n# ") + "\n\n"
	}
	file, _ := yaml.Marshal(cfg.tree())
	return text + string(file)
}

// maxChanges is how many fields Changes names, and maxValue how long a value of one is, in bytes.
const (
	maxChanges = 8
	maxValue   = 100
)

// Changes says which fields differ between two configurations of one Schema, each with
// its value before and after, such as "memory.availablePercent 5 → 6". Of many it names
// the first and says how many more there are.
func Changes(before, after *Config) string {
	switch changes := differences(nil, before.named(), after.named()); {
	case len(changes) == 0:
		return "no field differs"
	case len(changes) > maxChanges:
		return fmt.Sprintf("%s and %d more", strings.Join(changes[:maxChanges], ", "), len(changes)-maxChanges)
	default:
		return strings.Join(changes, ", ")
	}
}

// named is the tree of a configuration without overrides. In it, rules and conditions that others
// report have names: in which order a file has them does not matter.
func (c *Config) named() map[string]any {
	tree := c.tree()
	for i, r := range c.Reported {
		tree[fmt.Sprintf("conditions[%s]", r.Type)] = tree["conditions"].([]any)[i]
	}
	for _, r := range c.Rules {
		of := append([]string{string(r.Condition), r.Level.String()}, r.Reasons...)
		if r.IsGraver() {
			of = append(of, strconv.Itoa(r.Severity))
		}
		if !switchesOff(r) {
			tree[fmt.Sprintf("rules[%s]", strings.Join(of, " "))] = strings.TrimSpace(r.Taint.Pair().With(r.Taint.Value).String() + " " + string(r.Clear))
		}
	}
	maps.DeleteFunc(tree, func(name string, _ any) bool {
		return slices.Contains([]string{"rules", "conditions", "overrides"}, name)
	})
	return tree
}

// differences names the fields that differ between two values of trees.
func differences(at *field.Path, before, after any) (all []string) {
	was, wasSection := before.(map[string]any)
	is, isSection := after.(map[string]any)
	if wasSection && isSection {
		both := maps.Clone(was)
		maps.Copy(both, is)
		for _, name := range slices.Sorted(maps.Keys(both)) {
			all = append(all, differences(at.Child(name), was[name], is[name])...)
		}
	} else if !reflect.DeepEqual(before, after) {
		all = append(all, fmt.Sprintf("%s %s → %s", at, shown(before), shown(after)))
	}
	return all
}

// shown is a value of a tree in one line, and the beginning of a long one.
func shown(value any) string {
	if value == nil {
		return "unset"
	}
	text, _ := value.(string)
	if text == "" {
		data, _ := json.Marshal(value)
		text = string(data)
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
	if len(text) <= maxValue {
		return text
	}
	return strings.ToValidUTF8(text[:maxValue], "") + "…"
}
