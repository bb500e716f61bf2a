package taints

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// No message of ours is longer than the admission policies let pass, or cut in
// the middle of a letter.
func TestMessagesAreCut(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("x", 2000), strings.Repeat("x", 2001), strings.Repeat("ä", 5000), "x" + strings.Repeat("ä", 5000)} {
		got := Message(text)
		if len(got) > 2000 || !utf8.ValidString(got) || len(text) <= 2000 && got != text || len(text) > 2000 && !strings.HasSuffix(got, "…") {
			t.Errorf("%d bytes become %d: …%q", len(text), len(got), got[max(0, len(got)-9):])
		}
	}
}
