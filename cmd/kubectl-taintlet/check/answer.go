package check

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// State is what a check found.
type State string

// The States.
const (
	OK      State = "OK"
	Warning State = "Warning" // works, but not as well as it could
	Failed  State = "Failed"
	Skipped State = "Skipped" // nobody can tell, for the reason given
)

// answer is what a check found, in words.
type answer struct {
	state State
	text  string
	// remedy is what to do about this answer; empty: that of the check.
	remedy string
}

func ok(format string, args ...any) answer { return answer{OK, fmt.Sprintf(format, args...), ""} }

func warn(format string, args ...any) answer {
	return answer{Warning, fmt.Sprintf(format, args...), ""}
}

func fail(format string, args ...any) answer { return answer{Failed, fmt.Sprintf(format, args...), ""} }

func skip(format string, args ...any) answer {
	return answer{Skipped, fmt.Sprintf(format, args...), ""}
}

// but returns the answer with a remedy of its own.
func (a answer) but(remedy string) answer {
	a.remedy = remedy
	return a
}

// unread is the answer of a check that could not read what it is about. Who lacks a
// permission is told so, and not how to correct what may be healthy.
func unread(what string, err error) answer {
	if apierrors.IsForbidden(err) {
		return skip("%s: you may not read that: %v", what, err)
	}
	return fail("%s cannot be read: %v", what, err).but("try again; if it stays so, look at the API server")
}
