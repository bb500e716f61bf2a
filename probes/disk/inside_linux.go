package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes/hostfile"
)

// openInside opens the path as a process would whose root is root: an absolute
// symbolic link and .. stay inside. The descriptor is good for asking about the
// file and for resolving names in it (O_PATH).
//
// os.Root refuses absolute links. openat2(2) is missing before Linux 5.6 and refused by
// security profiles older than it, so it is used only where the root is another one.
func openInside(root, path string) (descriptor int, err error) {
	// O_DIRECTORY makes the kernel mount what autofs mounts on demand.
	descriptor, err = open(root, path, unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOTDIR) {
		descriptor, err = open(root, path, 0)
	}
	if err != nil {
		return -1, fmt.Errorf("opening: %w", err)
	}
	return descriptor, nil
}

// open opens a path under root in order to ask about the file.
func open(root, path string, flags int) (int, error) {
	flags |= unix.O_PATH | unix.O_CLOEXEC
	if filepath.Clean(root) == "/" { // as the kernel resolves paths anyway
		return hostfile.Uninterrupted(func() (int, error) { return unix.Open(path, flags, 0) })
	}
	top, err := unix.Open(root, unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	if err != nil {
		// Not wrapped, because a missing root is trouble, unlike a missing path in it.
		return -1, fmt.Errorf("the host's root: %v", err) //nolint:errorlint // on purpose
	}
	defer unix.Close(top) //nolint:errcheck // nothing was written
	how := unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_IN_ROOT}
	return hostfile.Uninterrupted(func() (int, error) { return unix.Openat2(top, path, &how) })
}

// openDirectory opens a directory under root, to make files in it.
func openDirectory(root, path string) (*os.Root, error) {
	descriptor, err := openInside(root, path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(descriptor) //nolint:errcheck // nothing was written
	return os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", descriptor))
}
