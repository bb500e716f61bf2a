// Package disk is the probe of DiskPressure. It samples the space and inodes of
// file systems, whether they can be written, and whether they answer at all.
// Reading is for Linux. The rest builds everywhere, for people check configurations
// elsewhere.
package disk

import "time"

// Thresholds say when a file system is full, and when a file system that does not
// answer makes the host Degraded.
type Thresholds struct {
	// AvailablePercent is the share of space, in percent (0 to 100), that must be
	// available to an unprivileged writer; below it the host is Degraded. The
	// percentage is taken of what such a writer could have at all, as in df(1),
	// which leaves the superuser's reserve out. 0: no such threshold.
	AvailablePercent float64
	// InodesPercent is the share of free inodes, in percent (0 to 100), below
	// which the host is Degraded. 0: no such threshold. It has no effect on file
	// systems that do not count inodes.
	InodesPercent float64
	// BlockedAfter is how long a path or a write may give no answer before the host
	// is Degraded; until then it is Unknown. 0: it stays Unknown.
	BlockedAfter time.Duration
	// ClearFactor times the threshold must be free before there is enough again.
	// A write must be faster than its own threshold by this factor. 1 or more;
	// less counts as 1.
	ClearFactor float64
}

// Write is a directory to write to at intervals. Only a write tells whether a
// file system can be written. An error need not make a file system read-only, so
// that its flags show nothing (ext4, from Linux 6.12 on and in stable kernels
// before). A device that is stuck still answers statfs(2).
type Write struct {
	// Directory takes the file, which exists only during the write. Empty: no
	// writes.
	Directory string
	// Interval is the time between two writes while they go well, or 5 s where
	// that is less and tasks wait for I/O. In between the last result counts.
	// After a bad or slow one every sample writes.
	Interval time.Duration
	// Slow is how long creating, writing, syncing and unlinking a file of 4 KiB
	// may take. The host is Degraded when no write has been faster for a minute.
	// 0: as long as it likes.
	Slow time.Duration
}
