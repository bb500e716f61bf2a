package disk

import (
	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes/hostfile"
)

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
	var file int
	err = hostfile.Uninterrupted(func() (err error) {
		file, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
		return err
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
	err = hostfile.Uninterrupted(func() error {
		_, err := unix.Pread(file, page, 0)
		return err
	})
	if err != nil {
		return s, err
	}
	return sampleFile(file)
}
