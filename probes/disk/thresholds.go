// Package disk is the probe of DiskPressure. It samples the space and inodes of file systems,
// whether they can be written, and whether they answer at all. Reading is for Linux. The rest
// builds everywhere, because kubectl-taintlet checks configurations on other systems.
package disk

import (
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
)

// Thresholds say when a file system is full, and when a file system that does not
// answer makes the host Degraded.
type Thresholds struct {
	// AvailablePercent is the share of space, in percent (0 to 100), that must be available to an
	// unprivileged writer; below it the host is Degraded. As in df(1), the percentage is taken of
	// the space without the superuser's reserve, capped at percentBaseMax. 0: no such threshold.
	AvailablePercent float64
	// EarlyPercent is the share of available space, in percent (0 to 100), by which the severity of
	// samples that are OK is computed: see trend.Limit. 0: by all findings.
	EarlyPercent float64
	// InodesPercent is the share of free inodes, in percent (0 to 100), below
	// which the host is Degraded. 0: no such threshold. It has no effect on file
	// systems that do not count inodes. It is taken of inodesBaseMax at most.
	InodesPercent float64
	// BlockedAfter is how long a path or a write may give no answer before the host
	// is Degraded; until then it is Unknown. 0: it stays Unknown.
	BlockedAfter time.Duration
	// ClearFactor times the threshold must be free before there is enough again.
	// A write must be faster than its own threshold by this factor. 1 or more;
	// less counts as 1.
	ClearFactor float64
}

const (
	// percentBaseMax caps, in bytes, the size that percentages are taken of. A percentage is meant
	// to leave room for data that will soon arrive, such as images that are being pulled. 10 % of
	// 512 GiB are 51 GiB. A disk of 1 TiB with 99 GiB left is not in trouble.
	percentBaseMax = 512 << 30
	// inodesBaseMax caps the inodes in the same way: ext4 makes one for each 16 KiB.
	inodesBaseMax = percentBaseMax / (16 << 10)
)

// space returns how many bytes must be available.
func (t Thresholds) space(f *fileSystem) trend.Limit {
	return trend.Part(t.AvailablePercent, float64(f.size), percentBaseMax, t.ClearFactor, probes.Bytes)
}

// inodes returns how many inodes must be free.
func (t Thresholds) inodes(f *fileSystem) trend.Limit {
	return trend.Part(t.InodesPercent, float64(f.inodesTotal), inodesBaseMax, t.ClearFactor, probes.Items)
}

// How fast a file system fills at most, which gives a sample its Headroom. Space fills as fast as a
// good NVMe device writes, and a file takes about 10 µs. A small file system is not filled in a
// moment either: without leastFill, one of 4 GiB would be sampled four times a second for ever.
const (
	plausibleBytes  = 2 << 30 // a second
	plausibleInodes = 100_000 // a second
	leastFill       = 16      // seconds, from empty to full
)

// Write is a directory to write to at intervals. Only a write tells whether a
// file system can be written. An error need not make a file system read-only, so
// that its flags show nothing (ext4, from Linux 6.12 on and in stable kernels
// before). A device that is stuck still answers statfs(2).
type Write struct {
	// Directory takes the file, which exists only during the write. Empty: no
	// writes.
	Directory string
	// Interval is the time between two writes while they go well. In between the
	// last result counts. After a bad or slow one every sample writes.
	Interval time.Duration
	// Slow is how long creating, writing, syncing and unlinking a file of 4 KiB
	// may take. The host is Degraded when no write has been faster for a minute.
	// 0: as long as it likes.
	Slow time.Duration
}
