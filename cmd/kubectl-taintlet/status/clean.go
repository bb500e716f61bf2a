package status

import "unicode/utf8"

// The longest texts of a Node that are kept, in bytes. Whoever may write a Node
// may write much longer ones.
const (
	maxName    = 253
	maxWord    = 128
	maxTaint   = 512
	maxMessage = 2048
)

// shorten cuts a text to so many runes.
func shorten(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
