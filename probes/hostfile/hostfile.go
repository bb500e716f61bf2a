// Package hostfile reads the small text files in which the kernel describes the
// host, and makes calls to the host that may hang. A file that is cut off is an
// error.
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

// ErrCutOff says that a file's last line has no newline. The kernel ends every
// line of its text files with one. Without it the rest of that line, and any
// number of further lines, are missing.
var ErrCutOff = errors.New("cut off: the last line has no newline")

// Lines returns a scanner over the lines of r. A last line without a newline
// ends it with ErrCutOff.
func Lines(r io.Reader) *bufio.Scanner {
	scanner := bufio.NewScanner(r)
	scanner.Split(wholeLines)
	return scanner
}

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

// mostBytes is the most that Read takes. The longest file that is read this way is
// meant to have some 100 KiB: swaps, with a line for each device.
const mostBytes = 1 << 20

// ErrTooLong says that a file is longer than any that the kernel makes of its kind.
var ErrTooLong = errors.New("longer than 1 MiB")

// Read reads a small file whole. One of more than 1 MiB is ErrTooLong.
func Read(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	data, err := io.ReadAll(io.LimitReader(file, mostBytes+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > mostBytes:
		return "", &fs.PathError{Op: "read", Path: path, Err: ErrTooLong}
	}
	return string(data), nil
}

// ReadOptional reads a file that a probe can do without. found is false, without
// an error, where the file is missing, where the kernel was told not to keep it
// (EOPNOTSUPP for PSI), or where we may not read it. The reason of any other error
// is the thing, which is the file's name in CamelCase, with Unreadable behind it.
func ReadOptional(path, thing string) (text string, found bool, err error) {
	text, err = Read(path)
	switch {
	case err == nil:
		return text, true, nil
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EOPNOTSUPP):
		return "", false, nil
	}
	return "", false, probes.Because(thing+"Unreadable", "reading: %w", err)
}

// Excerpt quotes the start of a text that was not understood.
func Excerpt(text string) string { return fmt.Sprintf("%.40q", text) }
