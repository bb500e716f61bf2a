// Package memory is the probe of MemoryPressure. It samples available memory,
// how fast that falls, and how long tasks wait for memory. Reading is for Linux,
// judging for every platform: people replay recorded samples elsewhere.
package memory

import "time"

// Thresholds say when memory is scarce. Little available memory is enough. How
// fast it falls and how long tasks wait for it are noisy, and count only when
// available memory is below a level as well. A threshold of 0 is off.
//
// Available memory is what the kernel says programs can have without swapping
// (MemAvailable), and what the ZFS cache would give back. Percentages are taken
// of all memory but huge pages (see meminfo.ordinary), so that they mean the same on
// every host.
type Thresholds struct {
	// AvailablePercent is the share of available memory, in percent (0 to
	// 100), below which the host is Degraded.
	AvailablePercent float64
	// AvailableBytes is the available memory, in bytes, below which the host is
	// Degraded, where that is more than AvailablePercent. It is the same on every
	// host: one with less memory than this is always Degraded. Where all pods together
	// have a limit, the host is Degraded when they have less than this left of it.
	AvailableBytes uint64
	// PercentBaseMax caps, in bytes, the memory that the three percentages of
	// available memory are taken of. 0: no cap. A percentage is meant to leave
	// time before memory runs out, and 5 % of 4 TiB would be 200 GiB.
	PercentBaseMax uint64

	// RunningOutWithin (above 0) and RunningOutAvailablePercent (0 to 100):
	// Degraded when, at the current rate, memory runs out within this time, and
	// the share of available memory is below this percentage. Swap outside of
	// memory has to run out as well.
	RunningOutWithin           time.Duration
	RunningOutAvailablePercent float64

	// StalledPercent and StalledAvailablePercent (0 to 100): Degraded when some
	// task waited for memory for at least the first percentage of the time, and the
	// share of available memory is below the second. The time is the last 2 s, or
	// that since the last sample where it is longer. Stalls count only as far as
	// the host's own reclaims account for them, because tasks also wait when their
	// own control group is full and the host is not.
	StalledPercent          float64
	StalledAvailablePercent float64
	// CriticalStalledPercent (0 to 100): Critical when all tasks that had
	// something to do waited for memory for at least this percentage of the last
	// 10 s, and available memory is below AvailablePercent or AvailableBytes. The
	// host's own reclaims limit these stalls as well.
	CriticalStalledPercent float64

	// ClearFactor is how much easier the threshold is that clears. ClearFactor
	// times the threshold must be available before memory is sufficient again, or
	// AvailableBytes and 5 % of the memory where that is less. Of the two measures
	// of a combination, one must be better than its own threshold by this factor.
	// 1 or more; less counts as 1.
	ClearFactor float64
}
