package terminal

import (
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A terminal has a size, and is cleared although a Writer writes no control sequence of others.
func TestSizeAndClearOfATerminal(t *testing.T) {
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close() //nolint:errcheck // nothing is left to be told
	fd := int(control.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 200})
	}
	if err != nil {
		t.Fatal(err)
	}
	screen, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close() //nolint:errcheck // the same
	w := &Writer{W: screen}
	if columns, lines := w.Size(); columns != 200 || lines != 50 {
		t.Errorf("%d columns, %d lines", columns, lines)
	}
	if err := w.Clear(); err != nil {
		t.Error(err)
	}
	if _, err := w.Write([]byte("a\x1b[31m")); err != nil {
		t.Error(err)
	}
	const want = "\x1b[H\x1b[2Ja?[31m"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(control, got); err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
}
