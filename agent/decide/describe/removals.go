package describe

import (
	"fmt"
	"time"
)

// Removals are how often others removed a condition's taints. They are for people:
// nothing is decided by them.
type Removals struct {
	Count int
	// By is the field manager of the newest; empty: the API server does not know it.
	By string
	// At is when the newest was noticed.
	At time.Time
}

// text tells of the removals; empty: there were none.
func (r Removals) text(now time.Time) string {
	switch r.Count {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("taint removed by %s at %s", somebody(r.By), clockText(r.At, now))
	}
	return fmt.Sprintf("taint removed %d times, most recently by %s at %s", r.Count, somebody(r.By), clockText(r.At, now))
}
