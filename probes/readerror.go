package probes

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// readError is why a part of the host could not be read or understood: the
// reason for machines, the error for people.
type readError struct {
	reason string
	err    error
}

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// because makes a readError of a reason and of what was tried.
func because(reason, format string, args ...any) error {
	return &readError{reason: reason, err: fmt.Errorf(format, args...)}
}

// unknownBecause is the Observation of a probe whose read gave err.
func unknownBecause(c Condition, err error) Observation {
	reason := "ReadFailed"
	if known, ok := errors.AsType[*readError](err); ok {
		reason = known.reason
	}
	return Observation{Condition: c, Level: Unknown, Reason: reason, Message: err.Error()}
}

// cutOff says that a file's last line has no newline. The kernel ends every
// line of its text files with one, so the rest of the line, and who knows how
// many more, are missing.
const cutOff = "cut off: the last line has no newline"

// wholeLines is a bufio.SplitFunc like bufio.ScanLines that refuses a last
// line without a newline.
func wholeLines(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if end := bytes.IndexByte(data, '\n'); end >= 0 {
		return end + 1, data[:end], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, errors.New(cutOff)
	}
	return 0, nil, nil
}

// lines returns a scanner over the whole lines of r.
func lines(r io.Reader) *bufio.Scanner {
	scanner := bufio.NewScanner(r)
	scanner.Split(wholeLines)
	return scanner
}

// readCount reads a file of procfs that holds one number above 0; thing is the
// file's name in a reason.
func readCount(path, thing string) (uint64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, because(thing+"Unreadable", "reading a limit: %w", err)
	}
	count, err := parseCount(string(text))
	if err != nil {
		return 0, because(thing+"Garbled", "reading a limit from %s: %w", path, err)
	}
	return count, nil
}

// readCountOrZero is readCount for a number that may be 0.
func readCountOrZero(path, thing string) (uint64, error) {
	if text, err := os.ReadFile(path); err == nil && string(text) == "0\n" {
		return 0, nil
	}
	return readCount(path, thing)
}

// parseCount reads one decimal number and its newline.
func parseCount(text string) (uint64, error) {
	digits, ok := strings.CutSuffix(text, "\n")
	if !ok {
		return 0, errors.New(cutOff)
	}
	return parsePositive(digits)
}

// parsePositive reads a number from 1 to 2^31-1: the kernel counts tasks, and
// keeps their limits, in an int.
func parsePositive(digits string) (uint64, error) {
	number, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("not a count of tasks: %w", err)
	}
	if number == 0 {
		return 0, errors.New("a count of 0 tasks cannot be")
	}
	return number, nil
}
