package disk

import (
	"time"
)

// sample is what all paths and directories showed at one time.
type sample struct {
	paths  []pathState
	writes []writeSample
}

// pathState is what one path showed. It answered, is absent, is silent, failed or
// made trouble. The zero report is that of a path of which nothing is known.
type pathState struct {
	name string
	// title names the file system as the host knows it; empty: the mounts are not known.
	title string
	// seenBy follows the title where space may be that of a quota.
	seenBy string
	// fileSystem is without a size where another path has reported it.
	fileSystem fileSystem
	// healthy is the file system at the newest healthy sample, which was since ago. Zero: there
	// was none.
	healthy   fileSystem
	since     time.Duration
	mounts    []mountSample
	answered  bool
	absent    bool
	bare      bool          // the host is to have mounted something there, and has not
	replaced  bool          // by another file system since the sample before
	remounted bool          // in any way
	silence   time.Duration // without an answer for this time; 0: there is one
	failures  int           // in a row: the file system says that it is broken
	err       error         // of the newest failure
	trouble   error         // why the path's state is not known
	unhealthy bool          // when it was last read
}

// mountSample is one mount under a path.
type mountSample struct {
	mount mount // zero: not known
	fell  bool  // it could be written when first seen, and cannot now
}

// writeSample is how the last write to one directory went, or for how long it has
// not come back.
type writeSample struct {
	Write
	writeAnswer
	title     string        // see pathState
	failures  int           // in a row
	slowFor   time.Duration // since the start of the first slow write in a row; 0: it was not slow
	silence   time.Duration // 0: it came back
	unhealthy bool          // when it was last written to
}

// writeAnswer is how one write went.
type writeAnswer struct {
	took time.Duration
	err  error
	// meant says that err is EROFS and that the mount is read-only while the file system is not: an
	// operator did this on purpose.
	meant bool
	// place is the file system of the directory; zero: not known.
	place identity
}

// fileSystem is what statfs(2) says about one file system.
type fileSystem struct {
	path                    string // the first path that led here
	device                  uint64 // st_dev
	available, size         uint64 // bytes for an unprivileged writer; size 0: without limit
	inodesFree, inodesTotal uint64 // total 0: not counted
}

// identity tells a file system from another in the same place. The device alone does
// not: its number is given to the next one as soon as it is free.
type identity struct {
	device uint64
	kind   int64
	fsid   [2]int32
}

// mount is what mountinfo says about one mount. The zero mount is not known.
type mount struct {
	point, fsType, source string
	root                  string // the directory of the file system that is mounted
	id, device            uint64 // what tells it from others
	readOnly              bool   // this mount
	superReadOnly         bool   // the file system, for everybody
	emergency             bool   // ext4 gave up writing after an error (Linux 6.15 and later)
	shutdown              bool   // ext4 was shut down (newer kernels)
	upper                 string // of an overlay: the directory that takes the writes
	quota                 bool   // the file system has quotas of directories
}

// failed says that the kernel has given the file system up. That is never meant
// to be, even if it was so when first seen.
func (m mount) failed() bool { return m.emergency || m.shutdown }

// seemsFailed says that the file system is read-only and the mount is not. An
// error leaves these file systems so, while mount(8) and a remount make both
// read-only. Images that declare themselves read-only (ext4's feature of that
// name) are in the same state.
func (m mount) seemsFailed() bool {
	switch m.fsType {
	case "ext2", "ext3", "ext4", "btrfs", "f2fs":
		return m.superReadOnly && !m.readOnly
	}
	return false
}

// healthyAgainAfter is how long a path or a directory must have been healthy before it may
// become unreadable without keeping the condition Unknown.
const healthyAgainAfter = 2 * time.Minute

// health remembers whether a path or a directory was healthy when it was last read. A taint
// may have been set for an unhealthy one.
type health struct {
	unhealthy  bool
	healthyFor time.Duration // since it was unhealthy; the time between two samples counts if both were healthy
	healthyAt  time.Time     // the last sample, if it was healthy
}

// follow adds the state of a path or directory in a sample: unhealthy, unreadable or healthy.
func (h *health) follow(isUnhealthy, isUnknown bool, now time.Time) {
	switch {
	case isUnhealthy:
		*h = health{unhealthy: true}
	case isUnknown:
		h.healthyAt = time.Time{}
	case h.unhealthy:
		if !h.healthyAt.IsZero() {
			h.healthyFor += now.Sub(h.healthyAt)
		}
		h.healthyAt = now
		h.unhealthy = h.healthyFor < healthyAgainAfter
	}
}
