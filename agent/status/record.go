package status

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/taintlet/taintlet/taints"
)

// maxRecord is the longest record that is read, as package decide has it.
const maxRecord = 16 << 10

// record is what is used of the annotation taintlet.dev/record. Times in it are
// durations since the boot of the host; At and Time are the same moment, by that
// clock and by the calendar.
type record struct {
	Version    int             `json:"version"`
	At         time.Duration   `json:"at"`
	Time       time.Time       `json:"time"`
	Owned      []taints.Pair   `json:"owned"`
	Conditions map[string]kept `json:"conditions"`
}

// kept is what the record remembers of a condition.
type kept struct {
	Level   string             `json:"level"`
	Penalty float64            `json:"penalty"`
	Dispute map[string]dispute `json:"dispute"` // by level
}

// dispute is what the record remembers of others who removed a taint.
type dispute struct {
	Stage  int            `json:"stage"` // 0: none, 1: the stand-in is used, 2: no taint
	Until  *time.Duration `json:"until"`
	LostAt *time.Duration `json:"lostAt"`
}

const recordVersion = 1

func parseRecord(text string) (record, error) {
	var r record
	if text == "" {
		return r, nil
	}
	if len(text) > maxRecord {
		return r, fmt.Errorf("the annotation %s has %d bytes, more than %d", taints.RecordAnnotation, len(text), maxRecord)
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return record{}, fmt.Errorf("the annotation %s cannot be read: %w", taints.RecordAnnotation, err)
	}
	if r.Version != recordVersion {
		return record{}, fmt.Errorf("the annotation %s has version %d, not %d", taints.RecordAnnotation, r.Version, recordVersion)
	}
	return r, nil
}

// calendar is a time of the record by the calendar; zero where that cannot be told.
func (r record) calendar(at *time.Duration) time.Time {
	if at == nil || r.Time.IsZero() {
		return time.Time{}
	}
	return r.Time.Add(*at - r.At)
}

// flaps is how often the condition was set in close succession. Each set counts
// one, and halves with time.
func (k kept) flaps() int {
	const most = 32 // as package decide has it
	if !(k.Penalty > 0) {
		return 0
	}
	return int(math.Round(math.Min(k.Penalty, most)))
}
