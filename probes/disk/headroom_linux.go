package disk

import (
	"math"
	"time"

	"github.com/taintlet/taintlet/probes/trend"
)

// How fast a file system fills at most before one is seen to fill faster. Space fills as
// fast as a good NVMe device writes, and a file takes about 10 µs. A small file system is
// not filled in a moment either: without leastFill, one of 4 GiB would be sampled four
// times a second for ever.
const (
	plausibleBytes  = 2 << 30 // a second
	plausibleInodes = 100_000 // a second
	leastFill       = 16      // seconds, from empty to full
)

// filling remembers how fast a file system filled at its fastest.
type filling struct {
	of            fileSystem // the newest
	space, inodes trend.Pace
}

// follow takes the next answer. A change of the size also changes the free amount, so it
// says nothing about how fast files are written. Where the size changes all the time
// (ZFS, and the inodes of XFS), the plausible rate counts.
func (f *filling) follow(now fileSystem, at time.Time) {
	if now.size != f.of.size {
		f.space = trend.Pace{}
	}
	if now.inodesTotal != f.of.inodesTotal {
		f.inodes = trend.Pace{}
	}
	f.of = now
	f.space.Add(at, float64(now.available))
	f.inodes.Add(at, float64(now.inodesFree))
}

// headroom returns the least time in which the space or the inodes can reach their
// threshold. It is math.MaxInt64 where neither has one.
func (f *filling) headroom(t Thresholds) time.Duration {
	least := time.Duration(math.MaxInt64)
	consider := func(pace trend.Pace, free, total uint64, enough, plausible float64) {
		if total > 0 && enough > 0 {
			plausible = min(plausible, float64(total)/leastFill)
			least = min(least, pace.Headroom(float64(free)-enough, plausible))
		}
	}
	bytes, _ := t.spaceEnough(f.of.size)
	inodes, _ := t.inodesEnough(f.of.inodesTotal)
	consider(f.space, f.of.available, f.of.size, bytes, plausibleBytes)
	consider(f.inodes, f.of.inodesFree, f.of.inodesTotal, inodes, plausibleInodes)
	return least
}
