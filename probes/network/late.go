package network

import (
	"context"
	"time"
)

// beat is how often the ticker of a round ticks. A round in which all is well
// ends before the first tick.
//
// lateAfter is how late a tick or the control probe may be. A third of the
// patience is then gone, and the network has the rest. On two processors, with 8
// programs that take all they get, ticks came 66 ms late at most, with 64 of them
// 302 ms, and no class failed for it.
const (
	beat      = 100 * time.Millisecond
	lateAfter = 500 * time.Millisecond
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
