package disk

import (
	"time"
)

// wellFor is how long a path or a directory must have been well before it may become
// unreadable without keeping the condition Unknown.
const wellFor = 2 * time.Minute

// health remembers whether a path or a directory was well when it was last read. One
// that was not may be what a taint was set for.
type health struct {
	unwell  bool
	wellFor time.Duration // since it was unwell; what was between two samples counts if both were well
	wellAt  time.Time     // the last sample, if it was well
}

// follow takes what a sample showed: the path or directory was not well, or it could not
// be read, or it was well.
func (h *health) follow(isUnwell, isUnknown bool, now time.Time) {
	switch {
	case isUnwell:
		*h = health{unwell: true}
	case isUnknown:
		h.wellAt = time.Time{}
	case h.unwell:
		if !h.wellAt.IsZero() {
			h.wellFor += now.Sub(h.wellAt)
		}
		h.wellAt = now
		h.unwell = h.wellFor < wellFor
	}
}
