package terminal

import (
	"strings"
	"testing"
)

// A rune that is written in two parts is one rune, and a text that is no UTF-8 is seen
// to be none.
func TestPlainWriterJoinsRunes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		parts []string
		want  string
	}{
		{[]string{"a√", "b"}, "a√b"},
		{[]string{"a\xe2", "\x88\x9ab"}, "a√b"},
		{[]string{"a\xe2", "\x88", "\x9a", "b"}, "a√b"},
		{[]string{"a\xe2", "b"}, "a?b"},
		{[]string{"\x1b[2J", "\u009b1m"}, "?[2J?1m"},
		{[]string{"\xc2", "\x9b1m"}, "?1m"},
	} {
		var out strings.Builder
		w := &Writer{W: &out}
		for _, part := range test.parts {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Errorf("%q: %d, %v", part, n, err)
			}
		}
		if out.String() != test.want {
			t.Errorf("%q: %q, want %q", test.parts, out.String(), test.want)
		}
	}
}
