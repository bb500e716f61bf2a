package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
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
	return []string{"apiVersion", "kind", overridesField, reportedField, "eviction", "startup", "heartbeat", "keys", "keyPrefix"}
}

// For returns the configuration of a Node with such labels: that of the first override all
// of whose labels the Node has, or else the file's own. For the same override it is the same
// pointer.
func (c *Config) For(node map[string]string) *Config {
	for _, other := range c.family {
		if len(other.nodeSelector) > 0 && labels.Set(other.nodeSelector).AsSelector().Matches(labels.Set(node)) {
			return other
		}
	}
	return c
}

// decodeOverrides decodes the file once more for each of its overrides. It returns the
// errors that the file does not have without it.
func (s Schema) decodeOverrides(cfg *Config, file map[string]json.RawMessage, known field.ErrorList) (errs field.ErrorList) {
	at := field.NewPath(overridesField)
	if len(cfg.Overrides) > maxOverrides {
		return field.ErrorList{field.TooMany(at, len(cfg.Overrides), maxOverrides)}
	}
	cfg.family = []*Config{cfg}
	for i, override := range cfg.Overrides {
		merged, wrong := s.decodeOverride(override, file, at.Index(i))
		for _, err := range wrong {
			if !slices.ContainsFunc(known, func(other *field.Error) bool { return other.Error() == err.Error() }) {
				err.Field = at.Index(i).String() + "." + err.Field
				errs = append(errs, err)
			}
		}
		cfg.family = append(cfg.family, merged)
	}
	for _, member := range cfg.family {
		member.family = cfg.family
	}
	return errs
}

// decodeOverride decodes the file with one of its overrides. The errors name fields of the
// override.
func (s Schema) decodeOverride(override Override, file map[string]json.RawMessage, at *field.Path) (*Config, field.ErrorList) {
	whole, sections := maps.Clone(file), maps.Clone(override)
	delete(whole, overridesField)
	delete(sections, selectorField)
	selector, errs := selectorOf(override[selectorField])
	for _, name := range notOverridden() {
		if _, found := sections[name]; found {
			errs = append(errs, field.Forbidden(field.NewPath(name), "it is the same for all Nodes of a cluster"))
			delete(sections, name)
		}
	}
	for name, change := range sections {
		if whole[name], _ = json.Marshal(mergePatch(shown(whole[name]), change)); change == nil { // it was JSON
			delete(whole, name)
		}
	}
	merged, wrong := s.decodeFields(whole)
	merged.nodeSelector = selector
	merged.Override = at.String() + " " + flow(reflect.ValueOf(selector))
	return merged, append(errs, wrong...)
}

// selectorOf reads the labels of an override.
func selectorOf(value any) (selector map[string]string, errs field.ErrorList) {
	at := field.NewPath(selectorField)
	given, _ := value.(map[string]any)
	if len(given) == 0 {
		return nil, field.ErrorList{field.Invalid(at, value, "must be labels of Nodes, such as {example.com/pool: batch}")}
	}
	selector = map[string]string{}
	for key, label := range given {
		text, isText := label.(string)
		if selector[key] = text; !isText {
			errs = append(errs, field.Invalid(at.Key(key), label, fmt.Sprintf("must be text; put it in quotes: \"%v\"", label)))
		}
	}
	return selector, append(errs, validation.ValidateLabels(selector, at)...)
}

// mergePatch merges a patch into a value as RFC 7386 says: objects field by field, where null
// removes a field. Any other value, and also a list, replaces the former value.
func mergePatch(value, patch any) any {
	changes, isObject := patch.(map[string]any)
	if !isObject {
		return patch
	}
	before, _ := value.(map[string]any)
	merged := map[string]any{}
	maps.Copy(merged, before)
	for name, change := range changes {
		if merged[name] = mergePatch(merged[name], change); change == nil {
			delete(merged, name)
		}
	}
	return merged
}
