package pid

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// readCount reads a file that holds one number above 0. thing is the file's name
// in a reason.
func readCount(path, thing string) (uint64, error) {
	text, err := hostfile.Read(path)
	if err != nil {
		return 0, probes.Because(thing+"Unreadable", "reading a limit: %w", err)
	}
	return countOf(path, text, thing)
}

// countOf is the number above 0 that the text of a file is.
func countOf(path, text, thing string) (uint64, error) {
	count, err := parseCount(text)
	if err != nil {
		return 0, probes.Because(thing+"Garbled", "reading a limit from %s: %w", path, err)
	}
	return count, nil
}

// parseCount returns the one number, above 0, of a text with its newline.
func parseCount(text string) (uint64, error) {
	digits, ok := strings.CutSuffix(text, "\n")
	if !ok {
		return 0, hostfile.ErrCutOff
	}
	return parsePositive(digits)
}

// parsePositive returns a number from 1 to 2^31-1, for the kernel keeps the
// number of tasks and its limits in an int.
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
