package config

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Override changes the configuration of some Nodes: it has the sections of a file, and
// nodeSelector.
type Override map[string]any

// For returns the configuration of a Node with such labels, always by the same pointer: that of the
// first override all of whose labels the Node has, or else the file's own.
func (c *Config) For(node map[string]string) *Config {
	for _, other := range c.Family {
		if len(other.nodeSelector) > 0 && labels.SelectorFromSet(other.nodeSelector).Matches(labels.Set(node)) {
			return other
		}
	}
	return c
}

// decodeOverrides decodes the file once more with each of its overrides, whose fields the errors name.
func (s Schema) decodeOverrides(cfg *Config, file map[string]any) (errs field.ErrorList) {
	at := field.NewPath("overrides")
	if len(cfg.Overrides) > maxOverrides {
		return field.ErrorList{field.TooMany(at, len(cfg.Overrides), maxOverrides)}
	}
	cfg.Family = []*Config{cfg}
	for i, override := range cfg.Overrides {
		selector, wrong := selectorOf(override["nodeSelector"])
		changes := map[string]any(maps.Clone(override))
		// Of most of these, the chart makes objects of the cluster, such as Leases and policies.
		for _, name := range []string{"apiVersion", "kind", "overrides", "conditions", "eviction", "startup", "heartbeat", "keys", "keyPrefix"} {
			if _, found := changes[name]; found {
				wrong = append(wrong, field.Forbidden(field.NewPath(name), "it is the same for all Nodes of a cluster"))
				delete(changes, name)
			}
		}
		delete(changes, "nodeSelector")
		changes["overrides"] = nil
		merged, more := s.decodeFields(mergePatch(file, changes).(map[string]any))
		merged.nodeSelector, merged.Override = selector, fmt.Sprintf("%s {%s}", at.Index(i), labels.FormatLabels(selector))
		cfg.Family = append(cfg.Family, merged)
		for _, err := range append(wrong, more...) {
			err.Field = at.Index(i).String() + "." + err.Field
			errs = append(errs, err)
		}
	}
	for _, member := range cfg.Family {
		member.Family, member.Hash = cfg.Family, cfg.Hash
	}
	return errs
}

// selectorOf reads the labels of an override.
func selectorOf(value any) (selector map[string]string, errs field.ErrorList) {
	at := field.NewPath("nodeSelector")
	text, _ := json.Marshal(value)
	if json.Unmarshal(text, &selector) != nil || len(selector) == 0 {
		errs = append(errs, field.Invalid(at, value, `must be labels of Nodes, such as {example.com/pool: batch, example.com/gpu: "true"}`))
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
