package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/probes"
)

// Load reads and decodes a file; an empty path gives the defaults.
func (s Schema) Load(path string) (*Config, error) {
	cfg, _, err := s.load(path)
	return cfg, err
}

// Reloader returns a function that loads a file again and again. It decodes the file only
// when its bytes have changed.
func (s Schema) Reloader(path string) func() (*Config, error) {
	var last []byte
	var cfg *Config
	var refused error
	return func() (*Config, error) {
		data, err := readFile(path)
		if err != nil {
			return nil, fmt.Errorf("configuration: %w", err)
		}
		if last == nil || !bytes.Equal(data, last) {
			last = data
			cfg, refused = s.decodeFile(path, data)
		}
		return cfg, refused
	}
}

// load is Load, and returns the file too.
func (s Schema) load(path string) (*Config, []byte, error) {
	if path == "" {
		return s.Default(), nil, nil
	}
	data, err := readFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration: %w", err)
	}
	cfg, err := s.decodeFile(path, data)
	if err != nil {
		return nil, nil, err
	}
	return cfg, data, nil
}

// decodeFile decodes what a file holds.
func (s Schema) decodeFile(path string, data []byte) (*Config, error) {
	cfg, err := s.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	hash := HashOf(data)
	for _, member := range cfg.family {
		member.Hash = hash
	}
	return cfg, nil
}

// HashOf tells files apart: the Hash of the Config that a file has.
func HashOf(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data))[:12] }

// debounceField is where a file has the debounce of all conditions, and a section its own.
const debounceField = "debounce"

// Decode reads a configuration over the defaults. It is strict: an unknown or
// doubled field, a value of the wrong type and an impossible value are errors
// that name the field. All of them are reported at once, up to some length;
// values that do not fit together are reported when all types are right.
func (s Schema) Decode(data []byte) (*Config, error) {
	fields, err := parse(data)
	if err != nil {
		return nil, shorten([]error{err})
	}
	cfg, errs := s.decodeFields(maps.Clone(fields))
	return cfg, shorten(append(errs, s.decodeOverrides(cfg, fields, errs)...))
}

// decodeFields decodes the fields at the root of a file, and takes them out of the map. It
// does not read the overrides.
func (s Schema) decodeFields(fields map[string]json.RawMessage) (*Config, []error) {
	cfg := s.Default()
	cfg.APIVersion, cfg.Kind, cfg.Hash = "", "", ""
	cfg.Rules = nil // decoding into the defaults would mix the elements' fields
	var errs []error
	allFit := true
	inherit := func(Section) {} // what the file says of all conditions
	decode := func(into any, data []byte, prefix string) {
		found, fits := decodeInto(into, data, prefix)
		errs, allFit = append(errs, found...), allFit && fits
	}
	if common, found := fields[debounceField]; found {
		decode(&cfg.Debounce, common, debounceField+".")
		delete(fields, debounceField)
		inherit = func(section Section) { _, _ = decodeInto(&section.Common().Debounce, common, "") }
	}
	for _, condition := range cfg.Conditions {
		inherit(condition.Section)
		if section, found := fields[condition.Field]; found {
			decode(condition.Section, section, condition.Field+".")
			delete(fields, condition.Field)
		}
	}
	if list, found := fields[reportedField]; found {
		var entries []json.RawMessage
		if json.Unmarshal(list, &entries) != nil {
			errs, allFit = append(errs, field.Invalid(field.NewPath(reportedField), shown(list), "must be a list")), false
		}
		for i, entry := range entries {
			section, at := defaultReported(), fmt.Sprintf("%s[%d]", reportedField, i)
			inherit(section)
			decode(section, entry, at+".")
			cfg.Conditions = append(cfg.Conditions, Condition{Definition{Name: probes.Condition(section.Type), Field: at}, section})
		}
		delete(fields, reportedField)
	}
	rest, err := json.Marshal(fields)
	if err != nil {
		return cfg, append(errs, err)
	}
	sections := []string{reportedField}
	for _, definition := range s {
		sections = append(sections, definition.Field)
	}
	found, fits := decodeInto(cfg, rest, "", sections...)
	errs = append(errs, found...)
	if !allFit || !fits { // fields that do not fit together may not have been read
		return cfg, append(errs, cfg.boundsBeside(errs)...)
	}
	_, hasPrefix := fields["standInPrefix"]
	cfg.addDefaultPrefix(hasPrefix)
	cfg.addDefaultRules()
	for _, invalid := range cfg.Validate() {
		errs = append(errs, invalid)
	}
	return cfg, errs
}

// parse returns the fields at the root of the file.
func parse(data []byte) (map[string]json.RawMessage, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, fmt.Errorf("the file is empty; at least apiVersion: %s and kind: %s are needed", APIVersion, Kind)
	}
	if err := checkYAML(string(data)); err != nil {
		return nil, err
	}
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	var fields map[string]json.RawMessage
	err = json.Unmarshal(asJSON, &fields)
	return fields, err
}

// unknownField is how the decoder's error about one begins.
const unknownField = `unknown field "`

// decodeInto reads one part of the file. Its errors name the fields by their path
// from the root, which begins with prefix. fits is false if a value has a wrong
// type. Then the others of the part are read. more are names of fields that are read already.
func decodeInto(into any, data []byte, prefix string, more ...string) (errs []error, fits bool) {
	strictErrs, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		var at *field.Path
		if prefix != "" {
			at = field.NewPath(strings.TrimSuffix(prefix, "."))
		}
		fitting, wrong := mismatches(data, reflect.TypeOf(into).Elem(), at)
		for _, err := range wrong {
			errs = append(errs, err)
		}
		if errs == nil {
			return []error{err}, false
		}
		strictErrs, _ = kjson.UnmarshalStrict(fitting, into) // told already
	}
	for _, strict := range strictErrs {
		if named, ok := errors.AsType[kjson.FieldError](strict); ok {
			name := named.FieldPath()
			named.SetFieldPath(prefix + name)
			if known := suggestion(reflect.TypeOf(into).Elem(), name, more...); known != "" && strings.HasPrefix(strict.Error(), unknownField) {
				strict = fmt.Errorf("%w: did you mean %s?", strict, known)
			}
		}
		errs = append(errs, strict)
	}
	return errs, err == nil
}
