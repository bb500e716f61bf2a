package disk

import (
	"time"
)

// healthyAgainAfter is how long a path or a directory must have been healthy before it may
// become unreadable without keeping the condition Unknown.
const healthyAgainAfter = 2 * time.Minute

// health remembers whether a path or a directory was healthy when it was last read. A taint
// may have been set for an unhealthy one.
type health struct {
	unhealthy  bool
	healthyFor time.Duration // since it was unhealthy; the time between two samples counts if both were healthy
	healthyAt  time.Time     // the last sample, if it was healthy
}

// follow takes what a sample showed: an unhealthy path or directory, one that could not be
// read, or a healthy one.
func (h *health) follow(isUnhealthy, isUnknown bool, now time.Time) {
	switch {
	case isUnhealthy:
		*h = health{unhealthy: true}
	case isUnknown:
		h.healthyAt = time.Time{}
	case h.unhealthy:
		if !h.healthyAt.IsZero() {
			h.healthyFor += now.Sub(h.healthyAt)
		}
		h.healthyAt = now
		h.unhealthy = h.healthyFor < healthyAgainAfter
	}
}
