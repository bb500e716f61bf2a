package terminal

import (
	"slices"
	"testing"
)

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		text, first, indent string
		columns             int
		want                []string
	}{
		{"one two three", "", "", 0, []string{"one two three"}},
		{"one two three", "  ", "  ", 9, []string{"  one two", "  three"}},
		{"one two three", "  ", "  ", 8, []string{"  one", "  two", "  three"}},
		{"überlang kurz", "", "", 5, []string{"überl", "ang", "kurz"}},
		{"12345 6", "", "", 5, []string{"12345", "6"}},
		{"", "    ", "    ", 60, []string{"    "}},
		{"one two three", "a  ", "    ", 8, []string{"a  one", "    two", "    thre", "    e"}},
		{"one two", "", "  ", 4, []string{"one", "  tw", "  o"}},
		{"one", "      ", "      ", 4, []string{"      one"}},
	} {
		if got := Wrap(test.text, test.first, test.indent, test.columns); !slices.Equal(got, test.want) {
			t.Errorf("%q in %d columns: %q, want %q", test.text, test.columns, got, test.want)
		}
	}
}
