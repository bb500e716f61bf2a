// Package pressure reads pressure stall information (PSI): the time that tasks
// lost because they waited for a resource
// (Documentation/accounting/psi.rst). Its Trigger wakes a probe when tasks wait
// for long.
package pressure

import (
	"time"

	"github.com/taintlet/taintlet/probes"
)

// Totals are how long tasks have waited for one resource since the host
// started. They are exact at the time of the read. The averages beside them are
// not used because they come late: in a recorded run out of memory, avg10 still
// read 1 when nothing was left.
type Totals struct {
	Some time.Duration // at least one task waited
	Full time.Duration // all tasks that had something to do waited
}

// ShortestStall is the shortest time between two reads whose totals may be
// compared. It is shorter than the shortest period of a probe.
const ShortestStall = 50 * time.Millisecond

// Stall is the share of the time between two reads, in percent, in which tasks
// waited for a resource.
type Stall struct{ Some, Full float64 }

// Since returns the stall since an earlier read. ok is false when the two cannot
// be compared: less than ShortestStall or more than probes.LongestGap lies
// between them, or a total went backwards.
func (t Totals) Since(earlier Totals, apart time.Duration) (s Stall, ok bool) {
	if apart < ShortestStall || apart > probes.LongestGap || t.Some < earlier.Some || t.Full < earlier.Full {
		return Stall{}, false
	}
	percent := func(waited time.Duration) float64 { return min(100, 100*waited.Seconds()/apart.Seconds()) }
	return Stall{percent(t.Some - earlier.Some), percent(t.Full - earlier.Full)}, true
}
