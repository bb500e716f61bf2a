package decide

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/taints"
)

// recordVersion is the version of the record that this release writes. A newer
// one on a Node makes the agent read-only: it may not undo what it does not
// understand.
const recordVersion = 1

// maxPenalty is all that damping needs: a second doubled so often is longer
// than any maxClearAfter. A forged record must not damp for weeks.
const maxPenalty = 32

var errNewer = errors.New("the record was written by a newer release")

// Boot is one boot of the host and when it began, on the same clock that Step
// is given. Times in the record are durations since boot: CLOCK_BOOTTIME goes
// on through suspend and knows nothing of steps of the wall clock.
type Boot struct {
	ID string
	At time.Time
}

// record is the annotation taintlet.dev/record: all that must survive the
// process. Fields that this release does not know are passed over.
type record struct {
	Version int `json:"version"`
	// Revision grows with every decision that is written. It tells a Node that
	// has not seen our last decision from one on which somebody undid it.
	Revision uint64 `json:"revision"`
	// Boot and At say when: nanoseconds since the boot with that ID. Time is
	// the same for people; nothing is decided by it.
	Boot string        `json:"boot"`
	At   time.Duration `json:"at"`
	Time string        `json:"time,omitempty"`
	// Instance is the agent that wrote the record.
	Instance instance `json:"instance"`
	// Owned are the pairs on the Node that are ours.
	Owned []taints.Pair `json:"owned,omitempty"`
	// TokensAt is when the write budget is full again.
	TokensAt time.Duration `json:"tokensAt,omitempty"`
	// EvictedAt is when the Node last stepped up to Critical.
	EvictedAt  *time.Duration                       `json:"evictedAt,omitempty"`
	Conditions map[probes.Condition]recordCondition `json:"conditions"`
}

type recordCondition struct {
	Level   probes.Level             `json:"level"`
	Penalty float64                  `json:"penalty,omitempty"`
	SetAt   *time.Duration           `json:"setAt,omitempty"`
	Dispute map[string]recordDispute `json:"dispute,omitempty"` // by level
}

type recordDispute struct {
	Stage  stage          `json:"stage,omitempty"`
	Until  *time.Duration `json:"until,omitempty"`
	LostAt *time.Duration `json:"lostAt,omitempty"`
}

// parseRecord reads the annotation. An absent one is an empty record.
func parseRecord(text string) (record, error) {
	if text == "" {
		return record{}, nil
	}
	var r record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		var v struct{ Version int }
		if json.Unmarshal([]byte(text), &v) == nil && v.Version > recordVersion {
			return record{}, errNewer
		}
		return record{}, fmt.Errorf("annotation %s: %w", taints.RecordAnnotation, err)
	}
	switch {
	case r.Version > recordVersion:
		return record{}, errNewer
	case r.Version != recordVersion:
		return record{}, fmt.Errorf("annotation %s: version %d is not %d", taints.RecordAnnotation, r.Version, recordVersion)
	case r.Revision == 0:
		return record{}, fmt.Errorf("annotation %s: no revision", taints.RecordAnnotation)
	}
	for condition, c := range r.Conditions {
		if c.Level == probes.Unknown || math.IsNaN(c.Penalty) || c.Penalty < 0 {
			return record{}, fmt.Errorf("annotation %s: impossible state of %s", taints.RecordAnnotation, condition)
		}
	}
	return r, nil
}

// timeline turns the record's durations into times of the present process.
// After a reboot it is unknown how long the host was down, but it has been up
// since: every event counts as older by that much and no more, so that nothing
// is over too early, whatever the wall clock says.
func (r record) timeline(boot Boot) func(time.Duration) time.Time {
	if r.Boot == boot.ID {
		return boot.At.Add
	}
	return func(t time.Duration) time.Time { return boot.At.Add(t - r.At) }
}
