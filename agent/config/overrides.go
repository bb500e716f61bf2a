package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// overridesField is where a file has its overrides, and selectorField where an override
	// says to which Nodes it applies.
	overridesField = "overrides"
	selectorField  = "nodeSelector"
	// maxOverrides is how many a file may have.
	maxOverrides = 32
)

// Override is what a file sets differently for some Nodes. It has the sections of a file,
// and nodeSelector.
type Override map[string]any

// notOverridden are the fields of which the chart makes objects of the cluster, such as
// Leases and policies, and those that a file has once.
func notOverridden() []string {
	return []string{"apiVersion", "kind", overridesField, reportedField, "eviction", "startup", "heartbeat", "autoscaler", "standInPrefix"}
}

// For returns the configuration of a Node with these labels: that of the first override all
// of whose labels the Node has, or else the file's own. For the same override it is the same
// pointer.
func (c *Config) For(labels map[string]string) *Config {
	for _, other := range c.family {
		if len(other.nodeSelector) > 0 && includes(labels, other.nodeSelector) {
			return other
		}
	}
	return c
}

func includes(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if has, found := labels[key]; !found || has != value {
			return false
		}
	}
	return true
}

// decodeOverrides decodes the file once more for each of its overrides. It returns the
// errors that the file does not have without it.
func (s Schema) decodeOverrides(cfg *Config, file map[string]json.RawMessage, known []error) (errs []error) {
	if len(cfg.Overrides) > maxOverrides {
		return []error{field.TooMany(field.NewPath(overridesField), len(cfg.Overrides), maxOverrides)}
	}
	whole := asAny(file)
	delete(whole, overridesField)
	family := []*Config{cfg}
	for i, override := range cfg.Overrides {
		at := field.NewPath(overridesField).Index(i)
		sections := maps.Clone(override)
		delete(sections, selectorField)
		for _, name := range notOverridden() {
			if _, found := sections[name]; found {
				errs = append(errs, field.Forbidden(at.Child(name), "it is the same for all Nodes of a cluster"))
				delete(sections, name)
			}
		}
		merged, found := s.decodeFields(rawFields(mergePatch(whole, map[string]any(sections))))
		for _, err := range found {
			if slices.ContainsFunc(known, func(other error) bool { return other.Error() == err.Error() }) {
				continue
			}
			text := at.String() + "." + err.Error()
			if rest, isUnknown := strings.CutPrefix(err.Error(), unknownField); isUnknown {
				text = unknownField + at.String() + "." + rest
			}
			errs = append(errs, errors.New(text))
		}
		var wrong field.ErrorList
		merged.nodeSelector, wrong = selectorOf(override[selectorField], at.Child(selectorField))
		for _, err := range wrong {
			errs = append(errs, err)
		}
		merged.Override = at.String() + " " + (&effective{}).flow(reflect.ValueOf(merged.nodeSelector))
		family = append(family, merged)
	}
	for _, member := range family {
		member.family = family
	}
	return errs
}

// selectorOf reads the labels of an override.
func selectorOf(value any, at *field.Path) (labels map[string]string, errs field.ErrorList) {
	given, _ := value.(map[string]any)
	if len(given) == 0 {
		return nil, field.ErrorList{field.Invalid(at, value, "must be labels of Nodes, such as {example.com/pool: batch}")}
	}
	labels = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		text, isText := given[key].(string)
		if !isText {
			errs = append(errs, field.Invalid(at.Key(key), given[key], fmt.Sprintf("must be text; put it in quotes: \"%v\"", given[key])))
		}
		for _, msg := range append(validation.IsQualifiedName(key), validation.IsValidLabelValue(text)...) {
			errs = append(errs, field.Invalid(at.Key(key), text, msg))
		}
		labels[key] = text
	}
	return labels, errs
}

// mergePatch merges a patch into a value as RFC 7386 says: objects field by field, where null
// removes a field. Anything else, a list too, takes the place of what was there.
func mergePatch(value, patch any) any {
	changes, isObject := patch.(map[string]any)
	if !isObject {
		return patch
	}
	before, _ := value.(map[string]any)
	merged := map[string]any{}
	maps.Copy(merged, before)
	for name, change := range changes {
		if change == nil {
			delete(merged, name)
		} else {
			merged[name] = mergePatch(merged[name], change)
		}
	}
	return merged
}

// asAny and rawFields turn the fields of a file into values that can be merged, and back. The
// JSON is that of a file that has been parsed.
func asAny(fields map[string]json.RawMessage) map[string]any {
	values := map[string]any{}
	for name, raw := range fields {
		values[name] = shown(raw)
	}
	return values
}

func rawFields(values any) map[string]json.RawMessage {
	text, _ := json.Marshal(values)
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(text, &fields)
	return fields
}
