package network

import (
	"context"
	"time"
)

// beat is how often the ticker of a round ticks, and lateAfter how late a tick or
// the control probe may be. A healthy round ends before the first tick.
const (
	beat      = 100 * time.Millisecond
	lateAfter = 300 * time.Millisecond
)

// lateness ticks until the context ends and returns by how much the latest tick
// was late. A process that stands still, or gets no processor, does not notice
// that an answer came in time.
func lateness(ctx context.Context) (latest time.Duration) {
	timer := time.NewTimer(beat)
	defer timer.Stop()
	for {
		begin := time.Now()
		select {
		case <-ctx.Done():
			return max(latest, time.Since(begin)-beat)
		case <-timer.C:
			latest = max(latest, time.Since(begin)-beat)
			timer.Reset(beat)
		}
	}
}
