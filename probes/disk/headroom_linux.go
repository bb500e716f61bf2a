package disk

import (
	"math"
	"time"

	"github.com/taintlet/taintlet/probes/trend"
)

// How fast a file system fills at most before one is seen to fill faster: the space
// at what a good NVMe device writes, the inodes at some 10 µs for a file. A small one
// is not filled in a moment either: without leastFill, one of 4 GiB would be sampled
// four times a second for ever.
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

// follow takes the next answer. A change of the size moves what is free by itself, and
// so tells nothing of how fast files are written. Where the size changes all the time
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
func (t Thresholds) headroom(f filling) time.Duration {
	least := time.Duration(math.MaxInt64)
	consider := func(pace trend.Pace, free, total uint64, percent, plausible float64) {
		if total > 0 && percent > 0 {
			plausible = min(plausible, float64(total)/leastFill)
			least = min(least, pace.Headroom(float64(free)-float64(total)*percent/100, plausible))
		}
	}
	consider(f.space, f.of.available, f.of.size, t.AvailablePercent, plausibleBytes)
	consider(f.inodes, f.of.inodesFree, f.of.inodesTotal, t.InodesPercent, plausibleInodes)
	return least
}

// headroom returns the least one of all paths that answered and can be filled.
// 0: there is none.
func (p *Probe) headroom(s sample) time.Duration {
	least := time.Duration(math.MaxInt64)
	for i, path := range p.paths {
		if s.paths[i].answered && path.canBeFilled() {
			least = min(least, p.thresholds.headroom(path.filling))
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// canBeFilled says that somebody can write to the path's file system. Behind a mount
// that is read-only others may: the read-only root of a container lies on the file
// system of all containers.
func (w *watchedPath) canBeFilled() bool {
	if w.mounts.own.point == "" { // not known
		return !w.last.readOnly
	}
	return !w.isReadOnlyForAll()
}

// isReadOnlyForAll says that nobody can write to the path's file system, whatever the
// mount.
func (w *watchedPath) isReadOnlyForAll() bool {
	return w.mounts.own.superReadOnly || w.mounts.beneath.superReadOnly
}
