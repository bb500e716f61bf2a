package config

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Load reads and decodes a file; an empty path gives the defaults.
func Load(path string) (*Config, error) {
	if path == "" {
		cfg := Default()
		cfg.Hash = "built-in"
		return cfg, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	cfg, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	cfg.Hash = fmt.Sprintf("%x", sha256.Sum256(data))[:12]
	return cfg, nil
}

// Decode reads a configuration over the defaults. It is strict: an unknown or
// doubled field, a value of the wrong type and an impossible value are errors
// that name the field, and all of them are reported at once.
func Decode(data []byte) (*Config, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, fmt.Errorf("the file is empty; at least apiVersion: %s and kind: %s are needed", APIVersion, Kind)
	}
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	cfg := Default()
	cfg.APIVersion, cfg.Kind = "", ""
	cfg.Rules = nil // decoding into the defaults would mix the elements' fields
	strictErrs, err := kjson.UnmarshalStrict(asJSON, cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Rules == nil {
		cfg.Rules = defaultRules()
	}
	return cfg, errors.Join(errors.Join(strictErrs...), cfg.Validate().ToAggregate())
}
