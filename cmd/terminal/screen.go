package terminal

import (
	"io"
	"os"
	"strings"

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

// The begin and the end of a picture. The terminal cuts its lines (DECAWM off and on again).
const (
	home      = "\x1b[H"
	clearAll  = "\x1b[2J" + home
	clearLine = "\x1b[K"
	noWrap    = "\x1b[?7l"
	wrapAgain = "\x1b[J\x1b[?7h"
)

// Draw draws a picture in one write, so that it does not flicker.
func (s *Screen) Draw(lines []string) error {
	text := strings.Join(lines, "\n") + "\n"
	if s.IsTerminal {
		text = home + noWrap + strings.Join(append(lines, ""), clearLine+"\n") + wrapAgain
	}
	switch {
	case s.drawn && !s.IsTerminal:
		text = "\n" + text
	case s.IsTerminal && !s.drawn:
		text = clearAll + text
	}
	s.drawn = true
	_, err := io.WriteString(s.W, text)
	return err
}
