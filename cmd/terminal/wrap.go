package terminal

import (
	"strings"
	"unicode/utf8"
)

// Wrap breaks a text into lines of at most so many columns, each after the indent. A word
// that is longer is cut. 0 columns: one line.
func Wrap(text, indent string, columns int) []string {
	room := columns - utf8.RuneCountInString(indent)
	if columns == 0 || room < 1 {
		return []string{indent + text}
	}
	var lines []string
	line := ""
	flush := func() {
		lines = append(lines, indent+line)
		line = ""
	}
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > room {
			flush()
		}
		for utf8.RuneCountInString(word) > room {
			letters := []rune(word)
			line, word = string(letters[:room]), string(letters[room:])
			flush()
		}
		if line != "" && word != "" {
			line += " "
		}
		line += word
	}
	if line != "" || len(lines) == 0 {
		flush()
	}
	return lines
}
