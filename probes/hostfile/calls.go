package hostfile

import (
	"context"
	"time"
)

// SoleCall runs a function that may hang, one call at a time. While a call is out, it starts no
// other. A system call that hangs costs a kernel thread that cannot be taken back, so two of them
// must never hang on one thing. The zero SoleCall is ready for use, by one goroutine.
type SoleCall[T any] struct {
	answer      chan T    // nil when no call is out
	isOld       bool      // the call was out before Start
	silentSince time.Time // start of the first call without an answer in time
}

// Start calls f on a new goroutine, unless an earlier call has not returned. If an earlier call
// returned after its caller had stopped waiting, Start drops that outdated answer.
func (c *SoleCall[T]) Start(f func() T) (isNew bool) {
	if c.answer != nil {
		select {
		case <-c.answer:
		default:
			c.isOld = true
			return false
		}
	}
	answer := make(chan T, 1) // room for one, so that f's goroutine ends even if nobody waits
	c.answer, c.isOld = answer, false
	if c.silentSince.IsZero() {
		c.silentSince = time.Now()
	}
	go func() { answer <- f() }()
	return true
}

// Wait waits for the answer of the call that is out. ok is false when the
// context ended first. The call stays out then.
func (c *SoleCall[T]) Wait(ctx context.Context) (answer T, ok bool) {
	select {
	case answer = <-c.answer:
		c.answer, c.silentSince = nil, time.Time{}
		return answer, true
	case <-ctx.Done():
		return c.Poll() // the call may have ended at the same time as the context
	}
}

// WaitOnce waits for each call once: while the same call stays out, later samples only check
// whether it has been answered.
func (c *SoleCall[T]) WaitOnce(ctx context.Context) (answer T, ok bool) {
	if c.isOld {
		return c.Poll()
	}
	return c.Wait(ctx)
}

// Poll takes the answer if there is one, without waiting.
func (c *SoleCall[T]) Poll() (answer T, ok bool) {
	select {
	case answer = <-c.answer:
		c.answer, c.silentSince = nil, time.Time{}
		return answer, true
	default:
		return answer, false
	}
}

// Silence returns for how long there has been no answer in time.
func (c *SoleCall[T]) Silence() time.Duration { return time.Since(c.silentSince) }
