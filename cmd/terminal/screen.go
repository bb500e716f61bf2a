package terminal

import (
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Screen is where pictures are drawn: over one another on a terminal, and one
// below the other elsewhere.
type Screen struct {
	W          io.Writer
	IsTerminal bool
	// Colours: the terminal has them, and its user wants them.
	Colours bool
	// Size is the number of columns and of lines; 0: any number.
	Size  func() (columns, lines int)
	drawn bool
}

// NewScreen finds out what w is. Colours are for a terminal only, and not where
// NO_COLOR has a value (no-color.org) or the terminal says that it has none.
func NewScreen(w io.Writer) *Screen {
	if plain, ok := w.(*Writer); ok {
		w = plain.W
	}
	s := &Screen{W: w, Size: func() (columns, lines int) { return 0, 0 }}
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return s
	}
	s.IsTerminal = true
	s.Colours = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	s.Size = func() (columns, lines int) {
		columns, lines, _ = term.GetSize(int(file.Fd())) // 0 where it is not known
		return columns, lines
	}
	return s
}

// Draw draws a picture in one write, so that it does not flicker.
func (s *Screen) Draw(lines []string) error {
	var text strings.Builder
	switch {
	case s.IsTerminal && !s.drawn:
		text.WriteString("\x1b[2J\x1b[H")
	case s.IsTerminal:
		text.WriteString("\x1b[H")
	case s.drawn:
		text.WriteString("\n")
	}
	s.drawn = true
	columns, _ := s.Size()
	for _, line := range lines {
		text.WriteString(cut(line, columns))
		if s.IsTerminal {
			text.WriteString("\x1b[K")
		}
		text.WriteString("\n")
	}
	if s.IsTerminal {
		text.WriteString("\x1b[J")
	}
	_, err := io.WriteString(s.W, text.String())
	return err
}

// cut shortens a line to that number of columns. An ellipsis in the last one says
// so. Sequences that set a colour take no column.
func cut(line string, columns int) string {
	visible := regexp.MustCompile("\x1b[^m]*m").ReplaceAllString(line, "")
	if columns == 0 || utf8.RuneCountInString(visible) <= columns {
		return line
	}
	var text strings.Builder
	inSequence := false
	for _, letter := range line {
		inSequence = inSequence || letter == '\x1b'
		switch {
		case inSequence, columns > 1:
			text.WriteRune(letter)
		case columns == 1:
			text.WriteRune('…')
		}
		if !inSequence {
			columns--
		}
		inSequence = inSequence && letter != 'm'
	}
	return text.String()
}
