package decide

import (
	"time"

	"github.com/taintlet/taintlet/agent/decide/describe"
	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// rendered is what a Node condition was rendered with.
type rendered struct {
	describe.Outlook
	level      probes.Level
	since      time.Time
	severity   int // of its value
	gist       gist
	unrecorded bool
}

// gist is what a sample says in one word.
type gist struct {
	level  probes.Level
	reason string
}

// gistOf returns what a sample says. How near a good sample is to its threshold is part of
// its value: on a host that is near one all the time, it changes with the noise.
func gistOf(o probes.Observation) gist {
	if o.Level == probes.OK && o.Clears != "" {
		return gist{level: probes.OK}
	}
	return gist{o.Level, o.Reason}
}

// flapsFor is how long a condition that is OK again shows how often it was set.
const flapsFor = time.Hour

// summary is what the record says of a condition to people. But for FaultSince,
// nothing is decided by it. It
// changes only when the record is written for another cause, or when the Node's condition
// is rendered anew. Times are those of the wall clock.
type summary struct {
	// Since is when the level last changed, ClearsAt when the condition clears if
	// every sample is good until then.
	Since    string `json:"since,omitempty"`
	ClearsAt string `json:"clearsAt,omitempty"`
	// HeldBy says what holds the condition back.
	HeldBy describe.Hold `json:"heldBy,omitempty"`
	// Flaps is how often the condition was set most recently.
	Flaps int `json:"flaps,omitempty"`
	// Removals is how often others removed its taints, RemovedBy the field manager of the
	// newest removal, and RemovedAt when that was noticed.
	Removals  int    `json:"removals,omitempty"`
	RemovedBy string `json:"removedBy,omitempty"`
	RemovedAt string `json:"removedAt,omitempty"`
	// FaultSince is since when there is a fault that a repair of the host cures, from the
	// host's boot. A restarted agent reads it.
	FaultSince time.Duration `json:"faultSince,omitempty"`
}

// readsLike reports whether both say the same. For the flaps or the removals alone the
// record is not written.
func (s summary) readsLike(other summary) bool {
	s.Flaps, s.Removals, s.RemovedBy, s.RemovedAt = other.Flaps, other.Removals, other.RemovedBy, other.RemovedAt
	return s == other
}

// conditionWrites is what our Node conditions are to say.
type conditionWrites struct {
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

// difference is how a condition, or all, differ from what the Node shows.
type difference struct {
	isNew    bool // the Node shows another level, or this process has shown nothing yet
	differs  bool // something else is waited for
	isOfBad  bool // the condition is not OK, and that is so or its value has moved
	isUrgent bool // a suspicion begins
}

func (d difference) and(other difference) difference {
	return difference{d.isNew || other.isNew, d.differs || other.differs, d.isOfBad || other.isOfBad, d.isUrgent || other.isUrgent}
}
