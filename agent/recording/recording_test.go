package recording

import (
	"errors"
	"io"
	"reflect"
	"strings"
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

// A line that is too long is told once, and ends the file.
func TestALineThatIsTooLongEndsTheFile(t *testing.T) {
	r, err := NewReader(strings.NewReader(Header() + strings.Repeat("x", maxLine+1) + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); err == nil || err.Error() != "line 2: must have at most 1048576 bytes" {
		t.Errorf("%v", err)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("then %v", err)
	}
}
