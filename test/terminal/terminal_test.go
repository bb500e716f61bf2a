package terminal

import (
	"strings"
	"testing"
)

// A screen shows what was written last at each place.
func TestRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"lines":              {"one\r\ntwo\n", "one\ntwo\n"},
		"drawn over":         {"\x1b[2J\x1b[Hlong line\x1b[K\r\nsecond\r\n\x1b[Hnew\x1b[K\r\n\x1b[J", "new\n"},
		"no rest is erased":  {"long line\r\n\x1b[Hnew", "newg line\n"},
		"cleared":            {"one\r\n\x1b[2J\x1b[Htwo", "two\n"},
		"colours take place": {"a\x1b[31mb\x1b[0mc", "abc\n"},
		"back to the begin":  {"abc\rd", "dbc\n"},
		"a mark in a bar":    {"██│··", "██│··\n"},
	} {
		s, err := Read(c.text)
		if err != nil || s.String() != c.want {
			t.Errorf("%s: %q, %v", name, s, err)
		}
	}
}

// What taintlet does not write is refused, so that no picture hides it.
func TestReadRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"\x1b[44m", "\x1b[2;2H", "\x1b]0;title\x07", "\x07", "a\tb", "\x1b[1A"} {
		if s, err := Read(text); err == nil {
			t.Errorf("%q is read as %q", text, s)
		}
	}
}

// Each part of a picture has its place, its width and its colour, and text is escaped.
func TestSVG(t *testing.T) {
	t.Parallel()
	s, err := Read("A  <b> c\r\n   \x1b[32mOK\x1b[0m d")
	if err != nil {
		t.Fatal(err)
	}
	svg := string(s.SVG("taintlet x"))
	for _, want := range []string{
		`class="title">$ taintlet x<`, `x="16.0" y="58" textLength="7.8" lengthAdjust="spacingAndGlyphs">A<`,
		`x="39.4" y="58" textLength="39.0" lengthAdjust="spacingAndGlyphs">&lt;b&gt; c<`,
		`x="39.4" y="76" textLength="15.6" lengthAdjust="spacingAndGlyphs" class="c32">OK<`, `x="62.8" y="76" textLength="7.8" lengthAdjust="spacingAndGlyphs">d<`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
}
