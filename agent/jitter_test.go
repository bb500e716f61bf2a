package agent

import (
	"testing"
	"time"
)

// A new configuration waits for up to 10 s for each EndpointSlice of the agents, 5
// min at most.
func TestJitterOfAReload(t *testing.T) {
	for slices, want := range map[int]time.Duration{0: 10 * time.Second, 1: 10 * time.Second, 7: 70 * time.Second, 30: 5 * time.Minute, 1000: 5 * time.Minute} {
		r := &reloader{crowd: func() time.Duration { return time.Duration(slices) * time.Second }}
		if got := r.jitter(); got != want {
			t.Errorf("%d slices: %s, want %s", slices, got, want)
		}
	}
}
