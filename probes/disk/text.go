package disk

import (
	"errors"
	"strings"
	"syscall"
	"unicode"
)

// errorText returns what the kernel said, without the names that Go puts before.
func errorText(err error) string {
	if code, ok := errors.AsType[syscall.Errno](err); ok {
		return code.Error()
	}
	return err.Error()
}

// joinErrors writes several errors in one line.
func joinErrors(errs []error) string {
	return strings.ReplaceAll(errors.Join(errs...).Error(), "\n", "; ")
}

// printable replaces what would break a line, for the names of devices and mount
// points may hold anything.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}
