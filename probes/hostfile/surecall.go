package hostfile

import (
	"context"
	"time"
)

// SureCall is a SoleCall that is waited for once: while the same call is still
// out in later looks, they only see whether it has come back. It also knows
// for how long there was no answer in time.
type SureCall[T any] struct {
	SoleCall[T]
	old         bool      // the call was out in an earlier look
	silentSince time.Time // start of the first call without an answer in time
}

// Start calls f, unless an earlier call is still out.
func (c *SureCall[T]) Start(f func() T) {
	out := c.answer
	c.SoleCall.Start(f)
	c.old = out != nil && out == c.answer
	if c.silentSince.IsZero() {
		c.silentSince = c.since
	}
}

// Wait waits for the answer until the context ends; not at all when the call
// is an old one.
func (c *SureCall[T]) Wait(ctx context.Context) (answer T, ok bool) {
	if c.old {
		return c.Poll()
	}
	if answer, ok = c.SoleCall.Wait(ctx); ok {
		c.silentSince = time.Time{}
	}
	return answer, ok
}

// Poll takes the answer if there is one.
func (c *SureCall[T]) Poll() (answer T, ok bool) {
	select {
	case answer = <-c.answer:
		c.answer, c.silentSince = nil, time.Time{}
		return answer, true
	default:
		return answer, false
	}
}

// Silence is for how long there has been no answer in time.
func (c *SureCall[T]) Silence() time.Duration { return time.Since(c.silentSince) }
