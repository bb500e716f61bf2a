// Package terminal writes to the terminals of people: texts that others wrote without
// what commands a terminal, and pictures over one another.
package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes a text that somebody else wrote safe for one line of a terminal: Plain,
// without ends of lines, and cut where it is too long.
func Clean(text string, most int) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return '?'
		}
		return r
	}, Plain(Cut(text, most)))
}

// Plain makes a text safe for a terminal. What does not print, what changes the
// direction of writing and what is stacked upon a letter becomes a question mark. Ends
// of lines and tabs stay.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case !unicode.IsPrint(r) || unicode.IsMark(r) || r == utf8.RuneError:
			return '?'
		}
		return r
	}, text)
}

// Cut cuts a text to at most so many bytes, and an ellipsis that says so.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
