package probes

import (
	"testing"
)

// FuzzLevel checks that a level is read only from the name that it is written as.
func FuzzLevel(f *testing.F) {
	for _, text := range []string{"Unknown", "OK", "Degraded", "Critical", "ok", "", "Level(7)", "Critical\x00"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		level := Degraded
		if err := level.UnmarshalText(text); err != nil && level != Degraded || err == nil && level.String() != string(text) {
			t.Errorf("%q is %s, %v", text, level, err)
		}
	})
}
