package disk

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// samplePath asks the kernel about the file system on which path, under root,
// lies. It hangs as long as the file system does.
//
// gopsutil's disk.Usage is not used: it drops f_flags, which say for nothing
// whether the file system is read-only, and counts blocks in f_bsize where the
// kernel counts in f_frsize.
func samplePath(root, path string) (pathSample, error) {
	if err := staysUnder(root, path); err != nil {
		return pathSample{}, err
	}
	full := filepath.Join(root, path)
	var where unix.Statx_t
	err := uninterrupted(func() error {
		return unix.Statx(unix.AT_FDCWD, full, 0, unix.STATX_TYPE|unix.STATX_MNT_ID, &where)
	})
	if err != nil {
		return pathSample{}, fmt.Errorf("statx: %w", err)
	}
	var usage unix.Statfs_t
	if err := uninterrupted(func() error { return unix.Statfs(full, &usage) }); err != nil {
		return pathSample{}, fmt.Errorf("statfs: %w", err)
	}
	look := pathSample{readOnly: usage.Flags&unix.ST_RDONLY != 0}
	if look.fileSystem, err = fromStatfs(&usage); err != nil {
		return pathSample{}, err
	}
	look.device = unix.Mkdev(where.Dev_major, where.Dev_minor)
	if where.Mask&unix.STATX_MNT_ID != 0 {
		look.mountID = where.Mnt_id
	}
	return look, nil
}

// fromStatfs picks what we judge. f_bavail is what an unprivileged writer
// gets; that and what is used are what df(1) takes for the whole.
func fromStatfs(u *unix.Statfs_t) (fileSystem, error) {
	if isImage(u.Type) {
		return fileSystem{}, nil
	}
	unit := uint64(max(u.Frsize, 0))
	if unit == 0 {
		unit = uint64(max(u.Bsize, 0))
	}
	overflow, _ := bits.Mul64(u.Blocks, unit)
	if u.Bfree > u.Blocks || u.Bavail > u.Blocks || overflow != 0 {
		return fileSystem{}, fmt.Errorf("statfs says impossible numbers: %d blocks of %d bytes, %d of them free and %d available",
			u.Blocks, unit, u.Bfree, u.Bavail)
	}
	f := fileSystem{
		available: u.Bavail * unit, size: (min(u.Blocks-u.Bfree+u.Bavail, u.Blocks)) * unit,
		inodesFree: u.Ffree, inodesTotal: u.Files,
	}
	// Free inodes beyond all inodes mean that nothing is counted: CephFS says
	// -1 free (fs/ceph/super.c). btrfs says 0 of 0.
	if f.inodesFree > f.inodesTotal {
		f.inodesFree, f.inodesTotal = 0, 0
	}
	return f, nil
}

// isImage says whether a file system of that type is made once and never
// written: the root of an immutable system, a snap, a CD. Such a one is always
// full (squashfs_statfs in fs/squashfs/super.c says 0 free of all), and it does
// not matter.
func isImage(kind int64) bool {
	switch kind {
	case unix.SQUASHFS_MAGIC, unix.EROFS_SUPER_MAGIC_V1, unix.ISOFS_SUPER_MAGIC, unix.CRAMFS_MAGIC:
		return true
	}
	return false
}

// staysUnder is an error when path, under root, cannot be looked at without
// leaving root.
func staysUnder(root, path string) error {
	if filepath.Clean(root) == "/" {
		return nil
	}
	inside, err := openRoot(root)
	if err != nil {
		return err
	}
	defer inside.Close() //nolint:errcheck // nothing was written
	_, err = inside.Stat(filepath.Join(".", path))
	return err
}

// openDirectory opens a directory under root without leaving root.
func openDirectory(root, path string) (*os.Root, error) {
	if filepath.Clean(root) == "/" {
		return os.OpenRoot(filepath.Join(root, path))
	}
	inside, err := openRoot(root)
	if err != nil {
		return nil, err
	}
	defer inside.Close() //nolint:errcheck // nothing was written
	return inside.OpenRoot(filepath.Join(".", path))
}

func openRoot(root string) (*os.Root, error) {
	inside, err := os.OpenRoot(root)
	if err != nil {
		// Not wrapped: a missing root is trouble, unlike a missing path in it.
		return nil, fmt.Errorf("opening the host's root: %v", err) //nolint:errorlint // on purpose
	}
	return inside, nil
}

// uninterrupted repeats a system call that a signal interrupted: file systems
// in user space and NFS let go then, and Go's scheduler sends signals.
func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
