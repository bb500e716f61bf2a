package probes

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// DiskThresholds say when a file system is full, and when it is given up.
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
	// BlockedAfter is how long a path may give no answer before the host is
	// Degraded; until then it is Unknown. 0: it stays Unknown.
	BlockedAfter time.Duration
	// ClearFactor times the threshold must be free before there is enough
	// again, and a write must be as many times faster than its own threshold. 1
	// or more; less counts as 1.
	ClearFactor float64
}

// Disk watches the host's file systems: space, inodes, whether they can be
// written, and whether they answer at all. It knows OK and Degraded; the worst
// finding decides.
//
// The severity of space and inodes is that of any scarcity: 0 at ease, 50 at
// the threshold, 100 when nothing is left. Of times (a slow write, no answer)
// it is 50 at the threshold and nears 100 as they grow. A file system that
// cannot be written is 100; one failed write is 75, two in a row are 100.
type Disk struct {
	*trigger

	host       Host
	thresholds DiskThresholds
	paths      []*diskPath
	writers    []*diskWriter
	// look is asked about one path; it may hang.
	look func(root, path string) (pathLook, error)

	// readMounts finds the mounts under the paths; it may hang.
	readMounts func([]wantedMount) []pathMounts
	mountCall  sureCall[[]pathMounts]
	mountsAt   time.Time // when the mounts were read last
	// mountsMatter: what the mounts said last was worth reading them again soon.
	mountsMatter bool

	stalls   pressure // of I/O at the last look
	stallsAt time.Time
}

const (
	// wakeIOStalledPercent of a short time that some task waited for I/O wake
	// the probe.
	wakeIOStalledPercent = 50
	// busyPercent of the time since the last look that some task waited for I/O
	// make a write due early. A look that the trigger asked for has it.
	busyPercent = 10
)

// mountsEvery is how often the mounts are read while nothing seems to have
// changed. The flags that statfs(2) gives for nothing in every look cover all
// of them but those of ext4's emergencies and of what lies beneath an overlay.
const mountsEvery = 30 * time.Second

// diskPath is one path to look at, what is remembered of it, and the call
// about it that may be out.
type diskPath struct {
	root, path string
	call       sureCall[pathAnswer]

	last     pathLook // of the last answer
	failures int      // looks in a row that the file system failed
	mounts   pathMounts
	// What could be written when it was first seen: the path by statfs(2), the
	// file system beneath an overlay by its mount.
	itself, beneath firstSight
}

type pathAnswer struct {
	look pathLook
	err  error
}

// pathLook is what the kernel says about one path.
type pathLook struct {
	fileSystem
	// readOnly is ST_RDONLY: the mount or the super block is read-only.
	readOnly bool
	// mountID is the first field of mountinfo; 0: not known (before Linux 5.8).
	mountID uint64
}

// fileSystem is what statfs(2) says of one file system.
type fileSystem struct {
	path                    string // the first path that led here
	device                  uint64 // st_dev
	available, size         uint64 // bytes for an unprivileged writer; size 0: without limit
	inodesFree, inodesTotal uint64 // total 0: not counted
}

// firstSight remembers whether a thing could be written when it was first
// seen. What was read-only from the start (the root of an immutable system, a
// container's) is meant to be.
type firstSight struct{ seen, writable bool }

// fell says whether the thing could be written once and cannot now.
func (f *firstSight) fell(readOnly bool) bool {
	if !f.seen {
		f.seen, f.writable = true, !readOnly
	}
	return f.writable && readOnly
}

var _ Probe = (*Disk)(nil)

// NewDisk returns the probe of the file systems on which the paths lie, which
// also writes where writes says. Paths and directories are looked for under
// h.Root; paths that do not exist are passed over, and the space of several on
// one device counts once. Where h.Root is not "/", a path through an absolute
// symbolic link is an error, for it would lead to a file system of the
// reader's own.
func NewDisk(h Host, paths []string, t DiskThresholds, writes ...DiskWrite) *Disk {
	d := &Disk{
		trigger: newTrigger(h, "io", wakeIOStalledPercent), host: h, thresholds: t, look: lookAt,
		readMounts: func(wanted []wantedMount) []pathMounts { return mountsOf(h.Proc, wanted) },
	}
	for _, path := range paths {
		d.paths = append(d.paths, &diskPath{root: h.Root, path: path})
	}
	for _, w := range writes {
		if w.Directory != "" {
			d.writers = append(d.writers, newDiskWriter(h, w))
		}
	}
	return d
}

// Condition is DiskPressure.
func (*Disk) Condition() Condition { return DiskPressure }

// Observe asks about all paths at once, writes where it is time to, and
// returns by the context's deadline. What hangs is not asked again before that
// call has come back, nor waited for a second time: what does answer is heard
// at once. A path that gives no answer makes the Observation Unknown until
// BlockedAfter, unless there is a worse finding.
func (d *Disk) Observe(ctx context.Context) Observation {
	return d.thresholds.judge(d.read(ctx))
}

// read asks about everything and waits until the last has answered or the
// context ends.
func (d *Disk) read(ctx context.Context) (s diskSample) {
	for _, p := range d.paths {
		p.call.start(func() pathAnswer {
			look, err := d.look(p.root, p.path)
			return pathAnswer{look, err}
		})
	}
	if len(d.writers) > 0 {
		busy := d.isBusy()
		for _, w := range d.writers {
			w.start(busy)
		}
	}
	seen := map[uint64]bool{}
	for _, p := range d.paths {
		changed, answered := p.collect(ctx, &s)
		d.mountsMatter = d.mountsMatter || changed
		if answered && !seen[p.last.device] {
			seen[p.last.device] = true
			s.fileSystems = append(s.fileSystems, p.last.fileSystem)
		}
	}
	d.renewMounts(ctx)
	for _, p := range d.paths {
		s.mounts = p.appendMounts(s.mounts)
	}
	for _, w := range d.writers {
		s.writes = append(s.writes, w.collect(ctx))
	}
	d.mountsMatter = s.suspicious()
	return s
}

// isBusy says whether tasks have waited long for I/O since the last look. No,
// where the kernel does not tell.
func (d *Disk) isBusy() bool {
	now, found, _ := readPressure(d.host, "io")
	at := time.Now()
	apart := at.Sub(d.stallsAt)
	waited, ok := now.since(d.stalls, apart)
	if apart >= shortestStall {
		d.stalls, d.stallsAt = now, at
	}
	return found && ok && waited.some >= busyPercent
}

// collect takes the answer about the path. changed says that its mounts
// should be read again.
func (p *diskPath) collect(ctx context.Context, s *diskSample) (changed, answered bool) {
	answer, ok := p.call.wait(ctx)
	switch {
	case !ok:
		s.silent = append(s.silent, silence{p.path, p.call.silence()})
		return false, false
	case errors.Is(answer.err, fs.ErrNotExist):
		p.forget()
		return false, false
	case isBroken(answer.err):
		p.failures++
		s.failed = append(s.failed, failure{p.path, p.failures, answer.err})
		return false, false
	case answer.err != nil:
		s.troubles = append(s.troubles, because("StatfsFailed", "looking at the file system of %s: %w", p.path, answer.err))
		return false, false
	}
	p.failures = 0
	old := p.last
	if answer.look.device != old.device {
		p.forget() // another file system is mounted there now
	}
	p.last = answer.look
	p.last.path = p.path
	return answer.look.readOnly != old.readOnly || answer.look.mountID != old.mountID, true
}

// forget starts the path's history afresh.
func (p *diskPath) forget() {
	p.last, p.failures, p.mounts, p.itself, p.beneath = pathLook{}, 0, pathMounts{}, firstSight{}, firstSight{}
}

// renewMounts reads the mounts when it is time to. They make a finding more
// exact and add some; what cannot be read adds nothing, and is no trouble of
// the disk's.
func (d *Disk) renewMounts(ctx context.Context) {
	if !d.mountsMatter && !d.mountsAt.IsZero() && time.Since(d.mountsAt) < mountsEvery {
		return
	}
	wanted := make([]wantedMount, len(d.paths))
	for i, p := range d.paths {
		wanted[i] = wantedMount{filepath.Join(p.root, p.path), p.last.mountID, p.last.device}
	}
	d.mountCall.start(func() []pathMounts { return d.readMounts(wanted) })
	found, ok := d.mountCall.wait(ctx)
	if !ok {
		return
	}
	d.mountsAt = time.Now()
	for i, p := range d.paths {
		p.mounts = found[i]
	}
}

// appendMounts adds what is known about the mounts under the path.
func (p *diskPath) appendMounts(all []mountSample) []mountSample {
	if p.last.path == "" {
		return all
	}
	all = append(all, mountSample{path: p.path, mount: p.mounts.own, fell: p.itself.fell(p.last.readOnly)})
	if beneath := p.mounts.beneath; beneath.point != "" {
		all = append(all, mountSample{path: beneath.point, mount: beneath, fell: p.beneath.fell(beneath.readOnly || beneath.superReadOnly)})
	}
	return all
}

// isBroken says whether err is a file system's word that it or its device is
// broken: EIO, and what XFS and ext4 say of damage (EFSCORRUPTED is EUCLEAN,
// EFSBADCRC is EBADMSG). XFS gives EIO even to stat(2) once it has shut down
// (xfs_vn_getattr in fs/xfs/xfs_iops.c).
func isBroken(err error) bool {
	return errors.Is(err, unix.EIO) || errors.Is(err, unix.EUCLEAN) || errors.Is(err, unix.EBADMSG)
}

// sureCall is a soleCall that is waited for once: while the same call is still
// out in later looks, they only see whether it has come back. It also knows
// for how long there was no answer in time.
type sureCall[T any] struct {
	soleCall[T]
	old         bool      // the call was out in an earlier look
	silentSince time.Time // start of the first call without an answer in time
}

// start calls f, unless an earlier call is still out.
func (c *sureCall[T]) start(f func() T) {
	out := c.answer
	c.soleCall.start(f)
	c.old = out != nil && out == c.answer
	if c.silentSince.IsZero() {
		c.silentSince = c.since
	}
}

// wait waits for the answer until the context ends; not at all when the call
// is an old one.
func (c *sureCall[T]) wait(ctx context.Context) (answer T, ok bool) {
	if c.old {
		return c.poll()
	}
	if answer, ok = c.soleCall.wait(ctx); ok {
		c.silentSince = time.Time{}
	}
	return answer, ok
}

// poll takes the answer if there is one.
func (c *sureCall[T]) poll() (answer T, ok bool) {
	select {
	case answer = <-c.answer:
		c.answer, c.silentSince = nil, time.Time{}
		return answer, true
	default:
		return answer, false
	}
}

// silence is for how long there has been no answer in time.
func (c *sureCall[T]) silence() time.Duration { return time.Since(c.silentSince) }
