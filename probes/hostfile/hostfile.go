// Package hostfile reads the small text files in which the kernel describes the
// host, whole or not at all, and makes calls that may hang.
package hostfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/taintlet/taintlet/probes"
)

// Excerpt quotes the start of a text that was not understood.
func Excerpt(text string) string { return fmt.Sprintf("%.40q", text) }

// ReadOptional reads a file that not every kernel has. found is false, without
// an error, where the file is missing, where the kernel was told not to keep it
// (EOPNOTSUPP for PSI), or where it is kept from us: what we are not given is
// not used, but it does not make us blind for the rest. thing is the file's
// name in a reason.
func ReadOptional(path, thing string) (text string, found bool, err error) {
	data, err := os.ReadFile(path)
	switch {
	case err == nil:
		return string(data), true, nil
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EOPNOTSUPP):
		return "", false, nil
	}
	return "", false, probes.Because(thing+"Unreadable", "reading: %w", err)
}

// ErrCutOff says that a file's last line has no newline. The kernel ends every
// line of its text files with one, so the rest of the line, and who knows how
// many more, are missing.
var ErrCutOff = errors.New("cut off: the last line has no newline")

// wholeLines is a bufio.SplitFunc like bufio.ScanLines that refuses a last
// line without a newline.
func wholeLines(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if end := bytes.IndexByte(data, '\n'); end >= 0 {
		return end + 1, data[:end], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, ErrCutOff
	}
	return 0, nil, nil
}

// Lines returns a scanner over the whole lines of r.
func Lines(r io.Reader) *bufio.Scanner {
	scanner := bufio.NewScanner(r)
	scanner.Split(wholeLines)
	return scanner
}
