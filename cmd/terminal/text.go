// Package terminal writes to the terminals of people: texts that others wrote without
// what commands a terminal, and pictures over one another.
package terminal

import (
	"fmt"
	"strings"
	"time"
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

// Sentence is Clean of a text of several lines, such as an error that has several: they
// become parts of one sentence.
func Sentence(text string, most int) string {
	return Clean(strings.NewReplacer(":\n", ": ", "\n", "; ").Replace(strings.TrimSpace(text)), most)
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

// Wrap breaks a text into lines of at most so many columns: one after first, and the others
// after the indent. A word that is longer is cut. 0 columns: one line.
func Wrap(text, first, indent string, columns int) []string {
	if columns == 0 || columns <= utf8.RuneCountInString(first) || columns <= utf8.RuneCountInString(indent) {
		return []string{first + text}
	}
	lines, line := []string(nil), first
	room := func() int { return columns - utf8.RuneCountInString(line) }
	isBegin := true // of a line
	next := func() { lines, line, isBegin = append(lines, line), indent, true }
	for _, word := range strings.Fields(text) {
		if !isBegin && utf8.RuneCountInString(word)+1 > room() {
			next()
		}
		if !isBegin {
			line += " "
		}
		for utf8.RuneCountInString(word) > room() {
			letters, fit := []rune(word), room()
			line, word = line+string(letters[:fit]), string(letters[fit:])
			next()
		}
		line, isBegin = line+word, isBegin && word == ""
	}
	if !isBegin || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// Span is a duration in at most two units, such as 3 h 20 min.
func Span(d time.Duration) string {
	d = d.Truncate(time.Second)
	minutes := int(d.Minutes())
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", minutes)
	case d < 24*time.Hour && minutes%60 == 0, d >= 10*time.Hour && d < 48*time.Hour:
		return fmt.Sprintf("%d h", minutes/60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
	}
	return fmt.Sprintf("%d d", minutes/60/24)
}
