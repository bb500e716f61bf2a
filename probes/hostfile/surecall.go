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

// Start calls f on a goroutine of its own, unless an earlier call is still out.
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
