package config_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/agent/config"
)

// The README's table of the configuration names every field.
func TestREADMENamesEveryField(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	fields(t, reflect.TypeFor[config.Config](), func(name string) {
		if !strings.Contains(string(readme), name+"`") {
			t.Errorf("the field %s is not in the README's table", name)
		}
	})
}

// fields calls seen with the name of each field that holds a value.
func fields(t *testing.T, of reflect.Type, seen func(name string)) {
	t.Helper()
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner := field.Type
		if inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && strings.HasSuffix(inner.PkgPath(), "agent/config") {
			fields(t, inner, seen)
		} else if name != "" && name != "-" {
			seen(name)
		}
	}
}
