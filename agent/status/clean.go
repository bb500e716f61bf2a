package status

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The longest texts of a Node that are kept, in bytes. Whoever may write a Node
// may write much longer ones.
const (
	maxName    = 253
	maxWord    = 128
	maxTaint   = 512
	maxMessage = 2048
)

// Clean makes a text that somebody else wrote safe for a terminal. What does not
// print, what changes the direction of writing and what is stacked upon a letter
// becomes a question mark. A text that is too long is cut.
func Clean(text string, most int) string {
	if len(text) > most {
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		text = text[:most] + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || unicode.IsMark(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
}

// shorten cuts a text to so many runes.
func shorten(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
