package disk

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes/hostfile"
)

// pathSample is what the kernel says about one path.
type pathSample struct {
	fileSystem
	// kind and fsid are f_type and f_fsid of statfs(2).
	kind int64
	fsid [2]int32
	// readOnly is ST_RDONLY: the mount or the super block is read-only.
	readOnly bool
	// mountID is the first field of mountinfo; 0: not known (before Linux 5.8).
	mountID uint64
}

func (s pathSample) identity() identity { return identity{s.device, s.kind, s.fsid} }

// samplePath asks the kernel about the file system on which path, under root,
// lies. It hangs as long as the file system does.
//
// gopsutil's disk.Usage is not used. It drops f_flags, which tell at no further
// cost whether the file system is read-only, and it counts blocks in f_bsize
// where the kernel counts in f_frsize.
func samplePath(root, path string) (pathSample, error) {
	descriptor, err := openInside(root, path)
	if err != nil {
		return pathSample{}, err
	}
	defer unix.Close(descriptor) //nolint:errcheck // nothing was written
	return sampleFile(descriptor)
}

// sampleFile asks about an open file.
func sampleFile(descriptor int) (pathSample, error) {
	var where unix.Statx_t
	_, err := hostfile.Uninterrupted(func() (int, error) {
		return 0, unix.Statx(descriptor, "", unix.AT_EMPTY_PATH, unix.STATX_TYPE|unix.STATX_MNT_ID, &where)
	})
	if err != nil {
		return pathSample{}, fmt.Errorf("statx: %w", err)
	}
	var usage unix.Statfs_t
	if _, err := hostfile.Uninterrupted(func() (int, error) { return 0, unix.Fstatfs(descriptor, &usage) }); err != nil {
		return pathSample{}, fmt.Errorf("statfs: %w", err)
	}
	s := pathSample{readOnly: usage.Flags&unix.ST_RDONLY != 0}
	if s.fileSystem, err = fromStatfs(&usage); err != nil {
		return pathSample{}, err
	}
	s.device = unix.Mkdev(where.Dev_major, where.Dev_minor)
	s.kind, s.fsid = usage.Type, usage.Fsid.Val
	if where.Mask&unix.STATX_MNT_ID != 0 {
		s.mountID = where.Mnt_id
	}
	return s, nil
}

// fromStatfs returns the part of statfs(2) that is judged. f_bavail is what an
// unprivileged writer can still get. The size is that and what is used, as in
// df(1).
func fromStatfs(u *unix.Statfs_t) (fileSystem, error) {
	// File systems that are made once and never written (the root of an immutable system, a snap, a
	// CD) are always full, which does not matter (squashfs_statfs in fs/squashfs/super.c).
	if slices.Contains([]int64{unix.SQUASHFS_MAGIC, unix.EROFS_SUPER_MAGIC_V1, unix.ISOFS_SUPER_MAGIC, unix.CRAMFS_MAGIC}, u.Type) {
		return fileSystem{}, nil
	}
	unit := uint64(max(u.Frsize, 0))
	if unit == 0 {
		unit = uint64(max(u.Bsize, 0))
	}
	overflow, size := bits.Mul64(u.Blocks, unit)
	bavail := u.Bavail
	if isNegative(bavail*unit, size) {
		bavail = 0
	}
	if u.Bfree > u.Blocks || bavail > u.Blocks || overflow != 0 {
		return fileSystem{}, fmt.Errorf("statfs says impossible numbers: %d blocks of %d bytes, %d of them free and %d available",
			u.Blocks, unit, u.Bfree, u.Bavail)
	}
	f := fileSystem{
		available: bavail * unit, size: (min(u.Blocks-u.Bfree+bavail, u.Blocks)) * unit,
		inodesFree: u.Ffree, inodesTotal: u.Files,
	}
	// More free inodes than inodes mean that they are not counted: CephFS says that
	// -1 are free (fs/ceph/super.c). btrfs says 0 of 0.
	if f.inodesFree > f.inodesTotal {
		f.inodesFree, f.inodesTotal = 0, 0
	}
	return f, nil
}

// isNegative says that a number of bytes is one below 0, and at most as far as the
// file system is large. f_bavail is that on file systems whose reserve for the
// superuser is in use (statvfs(3) of the BSDs; an NFS server hands it on). The type
// of f_bavail has no sign.
func isNegative(bytes, size uint64) bool { return bytes > math.MaxInt64 && -bytes <= size }

// isBroken reports whether err, from any system call, means that a file system, its device or its
// server is dead or damaged.
func isBroken(err error) bool {
	code, ok := errors.AsType[unix.Errno](err)
	return ok && slices.Contains([]unix.Errno{
		// XFS and ext4 report damage so: EFSCORRUPTED is EUCLEAN, EFSBADCRC is EBADMSG. XFS returns EIO
		// even from stat(2) once it has shut down (xfs_vn_getattr in fs/xfs/xfs_iops.c).
		unix.EIO, unix.EUCLEAN, unix.EBADMSG,
		// Other errors of a device (blk_errors in block/blk-core.c), or that it is gone. EBADE is a
		// reservation of another host, EILSEQ data that fails its checksum.
		unix.ENODEV, unix.ENXIO, unix.ENOLINK, unix.EREMOTEIO, unix.ENODATA, unix.EBADE, unix.EILSEQ,
		// The server of FUSE, NFS, CIFS or Ceph is gone, or does not know the file system any
		// more.
		unix.ENOTCONN, unix.ESHUTDOWN, unix.ECONNABORTED, unix.ESTALE, unix.ETIMEDOUT, unix.EHOSTDOWN,
	}, code)
}

// program is this program as an open file, also after an update removed its name. In a pod it
// lies on the file system of the container runtime.
const program = "/proc/self/exe"

// sampleDisk reads a little of one file from its disk. When a disk dies, statfs(2), flags and
// files in the page cache all answer from memory, and programs run on. Only that the disk is broken
// is an error: a file that cannot be opened or read for another reason says nothing of its disk.
func sampleDisk(_, path string) (s pathSample, err error) {
	if s, err = readDirect(path); isBroken(err) {
		return s, err
	}
	return s, nil
}

// readDirect reads the first 4 KiB of a file from its disk. O_DIRECT goes to the disk, without
// privileges. A file system that does not have it answers EINVAL.
func readDirect(path string) (s pathSample, err error) {
	const size = 4096
	file, err := hostfile.Uninterrupted(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return s, err
	}
	defer unix.Close(file) //nolint:errcheck // nothing was written
	// O_DIRECT wants memory that is aligned as the disk's blocks are: a page.
	page, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return s, err
	}
	defer unix.Munmap(page) //nolint:errcheck // it was mapped
	if _, err = hostfile.Uninterrupted(func() (int, error) { return unix.Pread(file, page, 0) }); err != nil {
		return s, err
	}
	return sampleFile(file)
}
