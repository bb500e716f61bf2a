package disk

import (
	"context"
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// watchedPath is one path to look at, what is remembered of it, and the call
// about it that may be out.
type watchedPath struct {
	root, path string
	call       hostfile.SureCall[pathAnswer]

	last     pathSample // of the last answer
	failures int        // looks in a row that the file system failed
	mounts   pathMounts
	// What could be written when it was first seen: the path by statfs(2), the
	// file system beneath an overlay by its mount.
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

// collect takes the answer about the path. changed says that its mounts
// should be read again.
func (p *watchedPath) collect(ctx context.Context, s *sample) (changed, answered bool) {
	answer, ok := p.call.Wait(ctx)
	switch {
	case !ok:
		s.silent = append(s.silent, silence{p.path, p.call.Silence()})
		return false, false
	case errors.Is(answer.err, fs.ErrNotExist):
		p.forget()
		return false, false
	case isBroken(answer.err):
		p.failures++
		s.failed = append(s.failed, failure{p.path, p.failures, answer.err})
		return false, false
	case answer.err != nil:
		s.troubles = append(s.troubles, probes.Because("StatfsFailed", "looking at the file system of %s: %w", p.path, answer.err))
		return false, false
	}
	p.failures = 0
	old := p.last
	if answer.sample.device != old.device {
		p.forget() // another file system is mounted there now
	}
	p.last = answer.sample
	p.last.path = p.path
	return answer.sample.readOnly != old.readOnly || answer.sample.mountID != old.mountID, true
}

// forget starts the path's history afresh.
func (p *watchedPath) forget() {
	p.last, p.failures, p.mounts, p.itself, p.beneath = pathSample{}, 0, pathMounts{}, firstSight{}, firstSight{}
}

// appendMounts adds what is known about the mounts under the path.
func (p *watchedPath) appendMounts(all []mountSample) []mountSample {
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
