package probes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/shirou/gopsutil/v3/disk"
)

// DiskThresholds say when a file system is full.
type DiskThresholds struct {
	// AvailablePercent is the share of space that an unprivileged writer can
	// still get, in percent (0 to 100), below which the host is Degraded. It is
	// of what such a writer could have at all, as in df(1): the reserve of the
	// superuser is not part of it. 0: no such threshold.
	AvailablePercent float64
	// InodesPercent is the share of free inodes, in percent (0 to 100), below
	// which the host is Degraded. 0: no such threshold. File systems that do not
	// count inodes have none to run out of.
	InodesPercent float64
	// ClearFactor times the threshold must be free before there is enough
	// again. 1 or more; less counts as 1.
	ClearFactor float64
}

// Disk watches the space and the inodes of the host's file systems. It knows
// OK and Degraded; the worst file system decides.
type Disk struct {
	thresholds DiskThresholds
	paths      []*diskPath
	// usage is asked about one path; it may hang.
	usage func(root, path string) (fileSystem, error)
}

// diskPath is one path to look at, and the call about it that may be out.
type diskPath struct {
	root, path string
	call       soleCall[diskAnswer]
}

type diskAnswer struct {
	fileSystem fileSystem
	err        error
}

var _ Probe = (*Disk)(nil)

// NewDisk returns the probe of the file systems on which the paths lie. The
// paths are looked for under h.Root; those that do not exist are passed over,
// and several on one device count once. Where h.Root is not "/", a path through
// an absolute symbolic link is an error, for it would lead to a file system of
// the reader's own.
func NewDisk(h Host, paths []string, t DiskThresholds) *Disk {
	d := &Disk{thresholds: t, usage: fileSystemUsage}
	for _, path := range paths {
		d.paths = append(d.paths, &diskPath{root: h.Root, path: path})
	}
	return d
}

// Condition is DiskPressure.
func (*Disk) Condition() Condition { return DiskPressure }

// Wake is nil: file systems are looked at by period only.
func (*Disk) Wake() <-chan struct{} { return nil }

// Observe asks about all paths at once and returns by the context's deadline.
// A path whose call hangs is not asked about again before that call has come
// back. A path that gives no answer makes the Observation Unknown, unless
// another one is Degraded already.
func (d *Disk) Observe(ctx context.Context) Observation {
	return d.thresholds.judge(d.read(ctx))
}

// diskSample is what one look at the paths found.
type diskSample struct {
	fileSystems []fileSystem // one for each device
	troubles    []error      // of the paths that gave no answer
}

// fileSystem is what statfs(2) says of one file system.
type fileSystem struct {
	path                    string // the first path that led here
	device                  uint64 // st_dev
	available, size         uint64 // bytes for an unprivileged writer; size 0: without limit
	inodesFree, inodesTotal uint64 // total 0: not counted
}

// judge says what a sample means.
func (t DiskThresholds) judge(s diskSample) Observation {
	worst, found := t.worst(s.fileSystems)
	if found && worst.Level == Degraded {
		return worst
	}
	if len(s.troubles) > 0 {
		o := unknownBecause(DiskPressure, s.troubles[0])
		for _, another := range s.troubles[1:] {
			o.Message += "; " + another.Error()
		}
		return o
	}
	if !found {
		return unknownBecause(DiskPressure, because("NoFileSystem", "none of the paths leads to a file system with a size"))
	}
	return worst
}

// worst is the Observation of the file system, and of its space or inodes,
// that is closest to its threshold; false when there is nothing to compare.
func (t DiskThresholds) worst(all []fileSystem) (worst Observation, found bool) {
	var worstYet scarcity
	consider := func(s scarcity, thing, message string) {
		if !found || s.tightness() < worstYet.tightness() {
			worst, worstYet, found = s.observe(DiskPressure, thing, message), s, true
		}
	}
	for _, f := range all {
		if f.size > 0 {
			available, size := float64(f.available), float64(f.size)
			consider(scarce(available, size*t.AvailablePercent/100, t.ClearFactor), "Space",
				fmt.Sprintf("available %s of %s (%s) on %s, threshold %s", bytesText(available), bytesText(size),
					shareText(available, size), f.path, percentText(t.AvailablePercent)))
		}
		if f.inodesTotal > 0 {
			free, total := float64(f.inodesFree), float64(f.inodesTotal)
			consider(scarce(free, total*t.InodesPercent/100, t.ClearFactor), "Inodes",
				fmt.Sprintf("free %d of %d inodes (%s) on %s, threshold %s", f.inodesFree, f.inodesTotal,
					shareText(free, total), f.path, percentText(t.InodesPercent)))
		}
	}
	return worst, found
}

// read asks about all paths and waits until the last has answered or the
// context ends.
func (d *Disk) read(ctx context.Context) (s diskSample) {
	for _, p := range d.paths {
		p.call.start(func() diskAnswer {
			f, err := d.usage(p.root, p.path)
			return diskAnswer{f, err}
		})
	}
	seen := map[uint64]bool{}
	for _, p := range d.paths {
		answer, answered := p.call.wait(ctx)
		switch {
		case !answered:
			s.troubles = append(s.troubles, because("StatfsBlocked",
				"looking at the file system of %s: no answer for %s", p.path, p.call.outFor()))
		case errors.Is(answer.err, fs.ErrNotExist):
		case answer.err != nil:
			s.troubles = append(s.troubles, because("StatfsFailed",
				"looking at the file system of %s: %w", p.path, answer.err))
		case !seen[answer.fileSystem.device]:
			seen[answer.fileSystem.device] = true
			answer.fileSystem.path = p.path
			s.fileSystems = append(s.fileSystems, answer.fileSystem)
		}
	}
	return s
}

// fileSystemUsage asks the kernel about the file system on which path, under
// root, lies. It hangs as long as the file system does.
func fileSystemUsage(root, path string) (fileSystem, error) {
	info, err := statUnder(root, path)
	if err != nil {
		return fileSystem{}, err
	}
	// gopsutil ignores contexts here, so none is handed on.
	usage, err := disk.Usage(filepath.Join(root, path))
	if err != nil {
		return fileSystem{}, fmt.Errorf("statfs: %w", err)
	}
	f, err := fromUsage(usage)
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		f.device = stat.Dev
	}
	return f, err
}

// fromUsage picks what we judge. gopsutil's Free is f_bavail, what an
// unprivileged writer gets, and its Used is f_blocks - f_bfree
// (disk/disk_unix.go of v3.24.5); their sum is what df(1) takes for the whole.
// It multiplies blocks by f_bsize where the kernel counts in f_frsize: on the
// few file systems where the two differ (some in user space) the bytes are off,
// the share is right.
func fromUsage(u *disk.UsageStat) (fileSystem, error) {
	if u.Used > u.Total || u.Free > u.Total {
		return fileSystem{}, fmt.Errorf("statfs says impossible numbers: %d bytes used and %d available of %d", u.Used, u.Free, u.Total)
	}
	f := fileSystem{available: u.Free, size: u.Used + u.Free, inodesFree: u.InodesFree, inodesTotal: u.InodesTotal}
	// Free inodes beyond all inodes mean that nothing is counted: CephFS says
	// -1 free (fs/ceph/super.c). btrfs says 0 of 0.
	if f.inodesFree > f.inodesTotal {
		f.inodesFree, f.inodesTotal = 0, 0
	}
	return f, nil
}

// statUnder is os.Stat of a path under root that never leaves root.
func statUnder(root, path string) (os.FileInfo, error) {
	if filepath.Clean(root) == "/" {
		return os.Stat(filepath.Join(root, path))
	}
	inside, err := os.OpenRoot(root)
	if err != nil {
		// Not wrapped: a missing root is trouble, unlike a missing path in it.
		return nil, fmt.Errorf("opening the host's root: %v", err) //nolint:errorlint // on purpose
	}
	defer inside.Close() //nolint:errcheck // nothing was written
	return inside.Stat(filepath.Join(".", path))
}
