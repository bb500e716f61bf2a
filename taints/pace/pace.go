// Package pace says how long the agent waits, so that the agents of a fleet neither
// act all at once nor ask without end.
package pace

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Sleep waits; false when the context ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// UpTo is a random part of a time, so that a fleet does not act all at once.
func UpTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(rand.Int64N(int64(d))) //nolint:gosec // not a secret
}

// Crowd is the time in which all agents of a fleet write once, when one API server
// writes a hundred Nodes a second. slices is the size of the fleet in hundreds.
func Crowd(slices int) time.Duration { return time.Duration(slices) * time.Second }

// Tempo is a factor of 0.9 to 1.1 for periods, so that the agents of a cluster
// that started together do not stay together.
func Tempo() float64 { return 0.9 + 0.2*rand.Float64() } //nolint:gosec // not a secret

// Jittered is a period at a random Tempo.
func Jittered(period time.Duration) time.Duration {
	return time.Duration(float64(period) * Tempo())
}

// Retry says how long to wait before the next try, given the results of the last ones. All waits
// have jitter, so that a fleet does not return in the same moment.
type Retry struct{ unanswered, answered, patient wait.Backoff }

// NewRetry returns a Retry before its first try.
func NewRetry() Retry {
	return Retry{
		// Nobody answers: asking again costs nobody anything.
		unanswered: wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.5, Steps: 5, Cap: 2 * time.Second},
		// The server answered or took the request, so it is busy enough.
		answered: wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 5, Cap: 8 * time.Second},
		// What is in no hurry, or would be refused again.
		patient: wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.5, Steps: 7, Cap: time.Minute},
	}
}

// After returns the pause after a failed try. urgent: something is late.
func (r *Retry) After(err error, urgent bool) time.Duration {
	unanswered, answered, patient := r.unanswered.Step(), r.answered.Step(), r.patient.Step()
	switch {
	case !urgent || IsRefusal(err):
		return patient
	case isAnswer(err):
		return answered
	}
	return unanswered
}

// IsRefusal reports whether the API server would say the same again.
func IsRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
}

// IsOverload reports whether the API server answered that it has too much to do.
func IsOverload(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
}

// isAnswer reports whether the API server answered, or took the request and was
// too slow.
func isAnswer(err error) bool {
	var status apierrors.APIStatus // no error by itself, so not for errors.AsType
	return errors.As(err, &status) || errors.Is(err, context.DeadlineExceeded)
}
