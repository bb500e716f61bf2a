package pid

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/taintlet/taintlet/probes/hostfile"
)

// parseCountOr returns parseCount, with 0 for this text.
func parseCountOr(none string) func(text string) (uint64, error) {
	return func(text string) (uint64, error) {
		if text == none {
			return 0, nil
		}
		return parseCount(text)
	}
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
