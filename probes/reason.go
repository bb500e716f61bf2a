package probes

import (
	"errors"
	"fmt"
	"regexp"
)

// maxReason is the longest reason, in bytes.
const maxReason = 64

// aReason is the form of metav1.Condition in k8s.io/apimachinery.
var aReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// IsReason reports whether a text that somebody else wrote has the form of a reason, and at
// most 64 bytes.
func IsReason(text string) bool { return len(text) <= maxReason && aReason.MatchString(text) }

// reasonError says why a part of the host could not be read or understood. The
// reason is for machines, the error for people.
type reasonError struct {
	reason string
	err    error
}

func (e *reasonError) Error() string { return e.err.Error() }
func (e *reasonError) Unwrap() error { return e.err }

// Because returns an error that says what was tried, formatted as by fmt.Errorf,
// and carries the reason of the Unknown that it leads to.
func Because(reason, format string, args ...any) error {
	return &reasonError{reason: reason, err: fmt.Errorf(format, args...)}
}

// UnknownBecause returns the Observation of a probe that could not tell because
// of err. Its reason is that of Because, or ReadFailed for any other error.
func UnknownBecause(c Condition, err error) Observation {
	reason := "ReadFailed"
	if known, ok := errors.AsType[*reasonError](err); ok {
		reason = known.reason
	}
	return Observation{Condition: c, Level: Unknown, Reason: reason, Message: err.Error()}
}
