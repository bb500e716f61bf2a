package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// newScreen finds out what w is. Colours are for a terminal only, and not where
// NO_COLOR has a value (no-color.org) or the terminal says that it has none.
func newScreen(w io.Writer) *screen {
	if plain, ok := w.(*plainWriter); ok {
		w = plain.w
	}
	s := &screen{w: w, columns: func() int { return 0 }, lines: func() int { return 0 }}
	file, ok := w.(*os.File)
	if !ok {
		return s
	}
	fd := int(file.Fd())
	if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err != nil {
		return s
	}
	s.isTerminal = true
	s.colours = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	size := func() (columns, lines int) {
		size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		if err != nil {
			return 0, 0
		}
		return int(size.Col), int(size.Row)
	}
	s.columns = func() int { columns, _ := size(); return columns }
	s.lines = func() int { _, lines := size(); return lines }
	return s
}
