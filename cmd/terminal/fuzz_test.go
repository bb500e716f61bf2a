package terminal

import (
	"testing"
	"unicode"
)

// FuzzClean checks that a text of others neither commands a terminal nor ends a line, and is
// not longer than allowed.
func FuzzClean(f *testing.F) {
	for _, text := range []string{"", "a", "\x1b[2J", "\u202e\u0301", "\xff\xfe", "a\r\nb\tc", "éééé", "\ufffd"} {
		f.Add(text, uint8(3))
		f.Add(text, uint8(200))
	}
	f.Fuzz(func(t *testing.T, text string, most uint8) {
		clean := Clean(text, int(most))
		for _, r := range clean {
			if !unicode.IsPrint(r) || unicode.IsMark(r) {
				t.Errorf("%q is %q", text, clean)
			}
		}
		if len(Cut(text, int(most))) > int(most)+len("…") {
			t.Errorf("%q is cut to %q", text, Cut(text, int(most)))
		}
	})
}
