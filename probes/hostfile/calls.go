package hostfile

import (
	"context"
	"time"
)

// SureCall is a SoleCall whose caller waits once for each call. While the same
// call stays out, later samples only check whether it has been answered. It also
// knows for how long there has been no answer in time. The zero SureCall is
// ready for use, by one goroutine.
type SureCall[T any] struct {
	sole        SoleCall[T]
	old         bool      // the call was out before Start
	silentSince time.Time // start of the first call without an answer in time
}

// Start calls f on a new goroutine, unless an earlier call has not returned.
func (c *SureCall[T]) Start(f func() T) {
	out := c.sole.answer
	c.sole.Start(f)
	c.old = out != nil && out == c.sole.answer
	if c.silentSince.IsZero() {
		c.silentSince = c.sole.since
	}
}

// Wait waits for the answer until the context ends. It does not wait for a call
// that was out before Start. ok is false when there is no answer.
func (c *SureCall[T]) Wait(ctx context.Context) (answer T, ok bool) {
	if c.old {
		return c.Poll()
	}
	if answer, ok = c.sole.Wait(ctx); ok {
		c.silentSince = time.Time{}
	}
	return answer, ok
}

// Poll takes the answer if there is one, without waiting.
func (c *SureCall[T]) Poll() (answer T, ok bool) {
	select {
	case answer = <-c.sole.answer:
		c.sole.answer, c.silentSince = nil, time.Time{}
		return answer, true
	default:
		return answer, false
	}
}

// Silence returns for how long there has been no answer in time.
func (c *SureCall[T]) Silence() time.Duration { return time.Since(c.silentSince) }

// SoleCall runs a function that may hang, one call at a time. While a call is
// out, it starts no other. A system call that hangs costs a kernel thread that
// nobody can take back, so two of them must never hang on one thing. The zero
// SoleCall is ready for use, by one goroutine.
type SoleCall[T any] struct {
	answer chan T    // nil when no call is out
	since  time.Time // when the call that is out was started
}

// Start calls f on a new goroutine, unless an earlier call has not returned. If an earlier call
// returned after its caller had stopped waiting, Start drops that outdated answer.
func (c *SoleCall[T]) Start(f func() T) {
	if c.answer != nil {
		select {
		case <-c.answer:
		default:
			return
		}
	}
	answer := make(chan T, 1) // room for one, so that f's goroutine ends even if nobody waits
	c.answer, c.since = answer, time.Now()
	go func() { answer <- f() }()
}

// Wait waits for the answer of the call that is out. ok is false when the
// context ended first. The call stays out then.
func (c *SoleCall[T]) Wait(ctx context.Context) (answer T, ok bool) {
	select {
	case answer = <-c.answer:
	case <-ctx.Done():
		select {
		case answer = <-c.answer: // the call ended at the same time as the context
		default:
			return answer, false
		}
	}
	c.answer = nil
	return answer, true
}

// OutFor returns how long the call has been out, rounded for a message.
func (c *SoleCall[T]) OutFor() time.Duration {
	out := time.Since(c.since)
	if out < time.Second {
		return out.Round(time.Millisecond)
	}
	return out.Round(time.Second)
}
