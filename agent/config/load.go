package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/taintlet/taintlet/probes"
)

// Load reads and decodes a file; an empty path gives the defaults.
func (s Schema) Load(path string) (*Config, error) {
	if path == "" {
		return s.Default(), nil
	}
	return s.Reloader(path, "")()
}

// Reloader returns a function that loads a file again at each call. It returns a configuration with
// another hash than before, or another error, and else neither.
func (s Schema) Reloader(path, hash string) func() (*Config, error) {
	return func() (cfg *Config, err error) {
		data, err := readFile(path)
		now := HashOf(data)
		if err != nil {
			now = err.Error()
		}
		if now == hash {
			return nil, nil //nolint:nilnil // nothing is new
		}
		if hash = now; err == nil {
			cfg, err = s.Decode(data)
		}
		if err != nil {
			return nil, fmt.Errorf("configuration %s: %w", path, err)
		}
		return cfg, nil
	}
}

// HashOf tells files apart, by the first digits of their SHA-256.
func HashOf(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data))[:12] }

// Decode reads a configuration over the defaults. It is strict: an unknown or
// doubled field, a value of the wrong type and an impossible value are errors
// that name the field. All of them are reported at once, up to some length;
// values that do not fit together are reported once every single value is possible.
func (s Schema) Decode(data []byte) (*Config, error) {
	if err := checkYAML(string(data)); err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := yaml.UnmarshalStrict(data, &fields); err != nil {
		return nil, shorten(fmt.Errorf("not YAML with fields: %w", err))
	}
	cfg, errs := s.decodeFields(fields)
	cfg.Hash = HashOf(data)
	if len(errs) == 0 { // else each override would repeat them
		errs = s.decodeOverrides(cfg, fields)
	}
	if len(errs) == 0 {
		return cfg, nil
	}
	wrong := make([]error, len(errs))
	for i, err := range errs {
		section := err.Field[:strings.IndexAny(err.Field+".", ".[")]
		link := "docs/configuration.md"
		if section != err.Field || err.Type != field.ErrorTypeForbidden { // there is such a section
			link += "#" + strings.ToLower(section)
		}
		wrong[i] = fmt.Errorf("%w (%s)", err, link)
	}
	return nil, shorten(errors.Join(wrong...))
}

// decodeFields decodes the fields at the root of a file, but for the overrides themselves.
func (s Schema) decodeFields(fields map[string]any) (*Config, field.ErrorList) {
	cfg := s.Default()
	cfg.APIVersion, cfg.Kind = "", ""
	cfg.Rules = nil // what a file does not have is added below
	d := decoder{debounce: fields["debounce"]}
	d.section(fields, reflect.ValueOf(cfg).Elem(), nil)
	if len(d.errs) > 0 { // the others may not have been read
		return cfg, d.errs
	}
	for i, r := range cfg.Reported {
		cfg.Conditions = append(cfg.Conditions, Condition{Definition{Name: probes.Condition(r.Type), Field: fmt.Sprintf("conditions[%d]", i)}, r})
	}
	cfg.addDefaultRules()
	cfg.SoftRules = cfg.earlyRules(cfg.KeyPrefix, false)
	return cfg, cfg.Validate()
}
