package decide

import (
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// outlook is what a Node condition says beside the value: what holds its taint
// back, and when it clears.
type outlook struct {
	// suspicion is the reason with which the host suspects itself; empty: it does
	// not. Its peers read that.
	suspicion string
	// reason of the newest bad sample.
	reason string
	held   Hold
	// evicting: it is the eviction that is held back, not the taint of Degraded.
	evicting bool
	// until is when what holds the taint back is over; zero: that is not known.
	until time.Time
	// standIn: the stand-in takes the taint's place.
	standIn bool
	// clears is when the condition is OK if all goes well; zero: the newest sample
	// was not good.
	clears time.Time
	// blind: the probe cannot tell.
	blind bool
}

// equals reports whether both are told in the same words. People are told full
// minutes.
func (o outlook) equals(other outlook) bool {
	o.clears, other.clears = nextMinute(o.clears), nextMinute(other.clears)
	o.until, other.until = nextMinute(o.until), nextMinute(other.until)
	return o == other
}

// rendered is what a Node condition was rendered with.
type rendered struct {
	outlook
	level      probes.Level
	since      time.Time
	severity   int // of its value
	said       said
	unrecorded bool
}

// said is what a sample says in one word.
type said struct {
	level  probes.Level
	reason string
}

// saidBy is what a sample says. How near a good sample is to its threshold is part of
// its value: on a host that is near one all the time, it changes with the noise.
func saidBy(o probes.Observation) said {
	if o.Level == probes.OK && o.Clears != "" {
		return said{level: probes.OK}
	}
	return said{o.Level, o.Reason}
}

// summary is what the record says of a condition to people. Nothing is decided by it.
// It changes only when the record is written for another cause, or when the Node's
// condition is rendered anew.
type summary struct {
	since, clearsAt time.Time
	held            Hold
	flaps           int
}

// flapsFor is how long a condition that is OK again shows how often it was set.
const flapsFor = time.Hour

// equals reports whether both say the same. For the flaps alone the record is not
// written.
func (w *summary) equals(other *summary) bool {
	a, b := w.recorded(), other.recorded()
	a.Flaps, b.Flaps = 0, 0
	return a == b
}

// recordSummary is told in the record. Times are those of the wall clock, for people.
type recordSummary struct {
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
func (w *summary) recorded() recordSummary {
	if w == nil {
		return recordSummary{}
	}
	return recordSummary{Since: wallText(w.since), ClearsAt: wallText(w.clearsAt), HeldBy: w.held, Flaps: w.flaps}
}

// report is what our Node conditions are to say.
type report struct {
	// refresh: their heartbeat is due.
	refresh bool
	// pending are being written. They do not change until they are written: a
	// message that moves with every sample must not make every sample a write.
	pending []taints.NodeCondition
	// updates are when the conditions were last written for a difference alone, the newest first.
	updates [updatesEach]time.Time
}

const (
	// updatesEach is how many reports in updatesWithin are due to a difference alone. What comes
	// and goes must not make every sample a write. For what a condition that is OK
	// says, half of them. A suspicion that begins is beyond that.
	updatesEach, updatesWithin = 2, time.Minute
	// moved is how far the severity moves until the value is told anew: a quarter of
	// the way from the threshold, which is 50, to the worst.
	moved = 13
	// falseAfter is how long samples must say something else than the Node until it is
	// told: another reason, or another level. With a sample each few seconds, what the
	// Node says is true within 30 s.
	falseAfter = 20 * time.Second
)
