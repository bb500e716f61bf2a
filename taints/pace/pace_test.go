package pace

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// A thousand agents that start in the same moment do not write in the same
// moment, neither their first heartbeats nor their tries after a refusal:
// kubernetes/node-problem-detector#662.
func TestAgentsDoNotBeatInStep(t *testing.T) {
	for name, c := range map[string]struct {
		next   func() time.Duration
		middle time.Duration
		spread float64 // of the middle, to each side
	}{
		"heartbeat":  {func() time.Duration { return Jittered(5 * time.Minute) }, 5 * time.Minute, 0.1},
		"try again":  {func() time.Duration { r := NewRetry(); return r.After(errors.New("refused"), false) }, 1250 * time.Millisecond, 0.2},
		"in a hurry": {func() time.Duration { r := NewRetry(); return r.After(errors.New("refused"), true) }, 625 * time.Millisecond, 0.2},
	} {
		t.Run(name, func(t *testing.T) {
			var waits []time.Duration
			for range 1000 {
				waits = append(waits, c.next())
			}
			slices.Sort(waits)
			side := time.Duration(float64(c.middle) * c.spread)
			if waits[0] < c.middle-side || waits[999] > c.middle+side {
				t.Errorf("waits from %s to %s, want %s ± %s", waits[0], waits[999], c.middle, side)
			}
			// Evenly spread, a tenth of the agents wait in each tenth of the time.
			for i := range 10 {
				from := c.middle - side + time.Duration(i)*side/5
				first, _ := slices.BinarySearch(waits, from)
				last, _ := slices.BinarySearch(waits, from+side/5)
				if last-first < 50 || last-first > 150 {
					t.Errorf("%d of 1000 agents write between %s and %s", last-first, from, from+side/5)
				}
			}
		})
	}
}
