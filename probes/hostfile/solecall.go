package hostfile

import (
	"context"
	"time"
)

// SoleCall runs a function that may hang, one call at a time: as long as a
// call is out, no other is started. A hung system call costs a kernel thread
// that nobody can take back, so there must never be two of them for one thing.
// It is used from one goroutine.
type SoleCall[T any] struct {
	answer chan T    // nil when no call is out
	since  time.Time // when the call that is out was started
}

// Start calls f on a goroutine of its own, unless an earlier call is still
// out. The answer of an earlier call that came after everybody had stopped
// waiting is out of date and is dropped.
func (c *SoleCall[T]) Start(f func() T) {
	if c.answer != nil {
		select {
		case <-c.answer:
		default:
			return
		}
	}
	answer := make(chan T, 1) // room for one: f's goroutine ends though nobody waits
	c.answer, c.since = answer, time.Now()
	go func() { answer <- f() }()
}

// Wait waits for the answer of the call that is out. ok is false when the
// context ended first; the call stays out.
func (c *SoleCall[T]) Wait(ctx context.Context) (answer T, ok bool) {
	select {
	case answer = <-c.answer:
	case <-ctx.Done():
		select {
		case answer = <-c.answer: // both had come: the answer counts
		default:
			return answer, false
		}
	}
	c.answer = nil
	return answer, true
}

// OutFor is how long the call that is out has been so, for a person.
func (c *SoleCall[T]) OutFor() time.Duration {
	out := time.Since(c.since)
	if out < time.Second {
		return out.Round(time.Millisecond)
	}
	return out.Round(time.Second)
}
