package probes

import (
	"errors"
	"fmt"
)

// reasonError is why a part of the host could not be read or understood: the
// reason for machines, the error for people.
type reasonError struct {
	reason string
	err    error
}

func (e *reasonError) Error() string { return e.err.Error() }

func (e *reasonError) Unwrap() error { return e.err }

// Because makes a readError of a reason and of what was tried.
func Because(reason, format string, args ...any) error {
	return &reasonError{reason: reason, err: fmt.Errorf(format, args...)}
}

// UnknownBecause is the Observation of a probe whose read gave err.
func UnknownBecause(c Condition, err error) Observation {
	reason := "ReadFailed"
	if known, ok := errors.AsType[*reasonError](err); ok {
		reason = known.reason
	}
	return Observation{Condition: c, Level: Unknown, Reason: reason, Message: err.Error()}
}
