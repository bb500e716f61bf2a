package disk

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// watchedPath is one path to sample, what is remembered of it, and the call that
// may be out about it.
type watchedPath struct {
	root, name string
	call       hostfile.SureCall[pathAnswer]

	last     pathSample // of the last answer
	failures int        // samples in a row in which the file system failed
	mounts   pathMounts
	// Whether they could be written when first seen: the path itself, by
	// statfs(2), and the file system beneath an overlay, by its mount.
	itself, beneath firstSight
}

type pathAnswer struct {
	sample pathSample
	err    error
}

// pathSample is what the kernel says about one path.
type pathSample struct {
	fileSystem
	// readOnly is ST_RDONLY: the mount or the super block is read-only.
	readOnly bool
	// mountID is the first field of mountinfo; 0: not known (before Linux 5.8).
	mountID uint64
}

// fileSystem is what statfs(2) says about one file system.
type fileSystem struct {
	path                    string // the first path that led here
	device                  uint64 // st_dev
	available, size         uint64 // bytes for an unprivileged writer; size 0: without limit
	inodesFree, inodesTotal uint64 // total 0: not counted
}

// firstSight remembers whether a thing could be written when it was first seen.
// What was read-only then (the root of an immutable system, or a container's) is
// meant to be.
type firstSight struct{ seen, writable bool }

// fell says whether the thing could be written when first seen and cannot now.
func (f *firstSight) fell(readOnly bool) bool {
	if !f.seen {
		f.seen, f.writable = true, !readOnly
	}
	return f.writable && readOnly
}

// collect takes the answer about the path into the sample. changed says that the
// path's mounts are to be read again.
func (w *watchedPath) collect(ctx context.Context, s *sample) (changed, answered bool) {
	answer, ok := w.call.Wait(ctx)
	switch {
	case !ok:
		s.silent = append(s.silent, silence{w.name, w.call.Silence()})
		return false, false
	case errors.Is(answer.err, fs.ErrNotExist):
		w.forget()
		return false, false
	case isBroken(answer.err):
		w.failures++
		s.failed = append(s.failed, failure{w.name, w.failures, answer.err})
		return false, false
	case answer.err != nil:
		s.troubles = append(s.troubles, probes.Because("StatfsFailed", "looking at the file system of %s: %w", w.name, answer.err))
		return false, false
	}
	w.failures = 0
	old := w.last
	if answer.sample.device != old.device {
		w.forget() // another file system is mounted there now
	}
	w.last = answer.sample
	w.last.path = w.name
	return answer.sample.readOnly != old.readOnly || answer.sample.mountID != old.mountID, true
}

// forget starts the path's history afresh.
func (w *watchedPath) forget() {
	w.last, w.failures, w.mounts, w.itself, w.beneath = pathSample{}, 0, pathMounts{}, firstSight{}, firstSight{}
}

// appendMounts appends what is known about the mounts under the path.
func (w *watchedPath) appendMounts(all []mountSample) []mountSample {
	if w.last.path == "" {
		return all
	}
	all = append(all, mountSample{path: w.name, mount: w.mounts.own, fell: w.itself.fell(w.last.readOnly)})
	if beneath := w.mounts.beneath; beneath.point != "" {
		all = append(all, mountSample{path: beneath.point, mount: beneath, fell: w.beneath.fell(beneath.readOnly || beneath.superReadOnly)})
	}
	return all
}

// isBroken says whether err means that a file system or its device is broken: EIO,
// and what XFS and ext4 report of damage (EFSCORRUPTED is EUCLEAN, EFSBADCRC is
// EBADMSG). XFS returns EIO even from stat(2) once it has shut down
// (xfs_vn_getattr in fs/xfs/xfs_iops.c).
func isBroken(err error) bool {
	return errors.Is(err, unix.EIO) || errors.Is(err, unix.EUCLEAN) || errors.Is(err, unix.EBADMSG)
}
