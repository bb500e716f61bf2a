package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Count is a number of things, such as 1 Node or 3 Nodes.
func Count(number int, what string) string {
	if number == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", number, what)
}

// Listed joins the first of some names and says how many more there are.
func Listed(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Colour is the sequence that sets the colour of the letters after it.
type Colour string

// The colours.
const (
	Red     Colour = "\x1b[31m"
	Green   Colour = "\x1b[32m"
	Yellow  Colour = "\x1b[33m"
	Magenta Colour = "\x1b[35m"

	uncoloured = "\x1b[0m"
)

// Paint returns the text in a colour; of no colour: the text.
func (c Colour) Paint(text string) string {
	if c == "" {
		return text
	}
	return string(c) + text + uncoloured
}

// Writer passes text on to W without what commands a terminal. Every verb writes
// through one, because much of what is printed was written by others: names and
// owners of pods, taints, messages of an API server. Pictures on a terminal are drawn
// past it (NewScreen): their colours are ours, and their texts were cleaned where
// they were read.
type Writer struct {
	W io.Writer
	// part is the begin of a rune whose rest has not been written yet.
	part []byte
}

// Write writes all but the begin of a rune at the end.
func (p *Writer) Write(text []byte) (int, error) {
	all := append(p.part, text...)
	end := len(all)
	for begin := max(0, end-utf8.UTFMax+1); begin < end; begin++ {
		if utf8.RuneStart(all[begin]) && !utf8.FullRune(all[begin:]) {
			end = begin
		}
	}
	p.part = append([]byte(nil), all[end:]...)
	if _, err := io.WriteString(p.W, Plain(string(all[:end]))); err != nil {
		return 0, err
	}
	return len(text), nil
}
