package decide

import (
	"math"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// told is what the record says of a condition to people. Nothing is decided by it.
// It changes only when the record is written for another cause, or when the Node's
// condition is rendered anew.
type told struct {
	since, clearsAt time.Time
	held            Hold
	flaps           int
}

// flapsFor is how long a condition that is OK again shows how often it was set.
const flapsFor = time.Hour

// tell returns what the record is to say of a condition now.
func (c *condition) tell(o outlook, now time.Time) *told {
	next := &told{since: c.since, clearsAt: o.clears, held: o.held, flaps: c.debounce.flaps()}
	if c.debounce.Level == probes.OK && now.Sub(c.debounce.SetAt) >= flapsFor {
		next.flaps = 0
	}
	if next.held == HeldFleetBrake { // the Node's condition says so, and it comes and goes
		next.held = ""
	}
	return next
}

// equals reports whether both say the same. For the flaps alone the record is not
// written.
func (w *told) equals(other *told) bool {
	a, b := w.recorded(), other.recorded()
	a.Flaps, b.Flaps = 0, 0
	return a == b
}

// flaps is how often the condition was set most recently, as damping counts it: the
// penalty just after the last set.
func (d Debouncer) flaps() int { return int(math.Round(d.Penalty)) }

// isDamped reports whether the condition clears later because it was set often.
func (d Debouncer) isDamped(c Debounce) bool {
	return d.flaps() > 1 && d.ClearAfter(c) > c.ClearAfter.Duration
}

// recordTold is told in the record. Times are those of the wall clock, for people.
type recordTold struct {
	// Since is when the level last changed, ClearsAt when the condition clears if
	// every sample is good until then.
	Since    string `json:"since,omitempty"`
	ClearsAt string `json:"clearsAt,omitempty"`
	// HeldBy says what holds the condition back.
	HeldBy Hold `json:"heldBy,omitempty"`
	// Flaps is how often the condition was set most recently.
	Flaps int `json:"flaps,omitempty"`
}

// recorded is the text of it; of nil too.
func (w *told) recorded() recordTold {
	if w == nil {
		return recordTold{}
	}
	return recordTold{Since: wallText(w.since), ClearsAt: wallText(w.clearsAt), HeldBy: w.held, Flaps: w.flaps}
}

// wallText writes a time for people, empty for none.
func wallText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// readWall reads a time for people; zero when it cannot be read.
func readWall(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at
}
