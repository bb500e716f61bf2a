package recording

import (
	"reflect"
	"testing"

	"github.com/taintlet/taintlet/probes"
)

// A path may have any letter, and none of them ends it.
func TestInputsOfOddPaths(t *testing.T) {
	for _, path := range []string{"/", "/a b", "/a=b", "/a:b,c", "/\"", "/ä\n", "/%2F", "/\xff"} {
		want := []probes.Measure{{Name: "available", Path: path, Value: 1.5}, {Name: "size", Path: path, Value: 3e12}}
		text := formatInputs(want)
		if got, err := parseInputs(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, %v, %+v", path, text, err, got)
		}
	}
}
