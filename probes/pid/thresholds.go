// Package pid is the probe of PIDPressure. It samples how many tasks there are,
// and how many there may be. Reading is for Linux, judging for every platform:
// people replay recorded samples elsewhere.
package pid

import "time"

// Thresholds say when the host is short of task identifiers, of which every
// thread takes one. A threshold of 0 is off.
type Thresholds struct {
	// UsedPercent is the share of the limit, in percent (above 0, up to 100),
	// at which the host is Degraded.
	UsedPercent float64
	// FreeTasks is the number of free tasks below which the host is Degraded,
	// where that comes before UsedPercent. It counts as at most a quarter of the
	// limit, so that a host with a small limit is not Degraded for ever.
	FreeTasks uint64
	// CriticalUsedPercent is the share of the limit, in percent (0 to 100), at
	// which the host is Critical.
	CriticalUsedPercent float64
	// RunningOutWithin and RunningOutUsedPercent (0 to 100): Degraded when, at the
	// current rate, no task is left within this time, and at least this percentage
	// of the limit is used. This is how a fork bomb shows before it has used up
	// the limit.
	RunningOutWithin      time.Duration
	RunningOutUsedPercent float64
	// ClearFactor times the free tasks of the threshold must be free before
	// there are enough again. 1 or more; less counts as 1.
	ClearFactor float64
}
