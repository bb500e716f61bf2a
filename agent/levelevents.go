package agent

import (
	"time"

	"github.com/taintlet/taintlet/probes"
)

// levelEventsEvery is the least time between two Events about the level of one
// condition. An Event before an eviction does not wait.
const levelEventsEvery = time.Minute

// levelEvents let one Event about the level of each condition pass in a minute. Of
// those that have to wait the newest passes, because it has the present level.
type levelEvents struct {
	last    map[probes.Condition]time.Time
	waiting map[probes.Condition]levelEvent
}

// levelEvent is an Event about the level of a condition.
type levelEvent struct{ kind, reason, message string }

func newLevelEvents() *levelEvents {
	return &levelEvents{last: map[probes.Condition]time.Time{}, waiting: map[probes.Condition]levelEvent{}}
}

// add has an Event wait for its turn.
func (e *levelEvents) add(c probes.Condition, event levelEvent) { e.waiting[c] = event }

// wrote notes that an Event about the level was written. An Event that waits is out of date.
func (e *levelEvents) wrote(c probes.Condition, now time.Time) {
	e.last[c] = now
	delete(e.waiting, c)
}

// pass writes the Events whose turn has come.
func (e *levelEvents) pass(now time.Time, write func(kind, reason, message string)) {
	for c, event := range e.waiting {
		if before, found := e.last[c]; found && now.Sub(before) < levelEventsEvery {
			continue
		}
		e.wrote(c, now)
		write(event.kind, event.reason, event.message)
	}
}
