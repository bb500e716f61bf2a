package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// isWholeHost says that root is the root that the kernel resolves paths in anyway.
func isWholeHost(root string) bool { return filepath.Clean(root) == "/" }

// openInside opens the path as a process would whose root is root: an absolute
// symbolic link and .. stay inside. The descriptor is good for asking about the
// file and for resolving names in it (O_PATH).
func openInside(root, path string) (descriptor int, err error) {
	var top int
	err = uninterrupted(func() (err error) {
		top, err = unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		// Not wrapped, because a missing root is trouble, unlike a missing path
		// in it.
		return -1, fmt.Errorf("opening the host's root: %v", err) //nolint:errorlint // on purpose
	}
	defer unix.Close(top) //nolint:errcheck // nothing was written
	descriptor, err = resolve(top, path)
	// Linux before 5.6 lacks the call, security profiles older than the call refuse
	// it, and where a path has .. it fails while others rename directories.
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EAGAIN) {
		descriptor, err = walk(top, path)
	}
	if err != nil {
		return -1, fmt.Errorf("opening: %w", err)
	}
	return descriptor, nil
}

// resolve lets the kernel resolve the path, with top as the root.
func resolve(top int, path string) (descriptor int, err error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}
	open := func() (err error) {
		descriptor, err = unix.Openat2(top, path, &how)
		return err
	}
	// O_DIRECTORY makes the kernel mount what autofs mounts on demand.
	err = uninterrupted(open)
	if errors.Is(err, unix.ENOTDIR) {
		how.Flags &^= unix.O_DIRECTORY
		err = uninterrupted(open)
	}
	return descriptor, err
}

// mostLinks is how many symbolic links a path may lead through, as in the kernel
// (MAXSYMLINKS in include/linux/namei.h).
const mostLinks = 40

// walk does what resolve does, one name at a time. It never follows a link or ..
// by name, and so cannot leave top whatever others rename meanwhile.
func walk(top int, path string) (descriptor int, err error) {
	var way []int // the directories below top that led here; the last may be any file
	defer func() {
		for _, passed := range way {
			if passed != descriptor {
				unix.Close(passed) //nolint:errcheck // nothing was written
			}
		}
	}()
	isDirectory, links := true, 0
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch {
		case (name == "" || name == "." || name == "..") && !isDirectory:
			return -1, unix.ENOTDIR
		case name == "" || name == ".":
			continue
		case name == "..":
			way = withoutLast(way)
			continue
		}
		next, kind, target, err := step(lastOr(top, way), name)
		switch {
		case err != nil:
			return -1, err
		case kind != unix.S_IFLNK:
			way, isDirectory = append(way, next), kind == unix.S_IFDIR
			continue
		}
		if links++; links > mostLinks {
			return -1, unix.ELOOP
		}
		if strings.HasPrefix(target, "/") {
			for len(way) > 0 {
				way = withoutLast(way)
			}
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	if len(way) == 0 {
		return unix.Openat(top, ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	return lastOr(top, way), nil
}

func lastOr(top int, way []int) int {
	if len(way) == 0 {
		return top
	}
	return way[len(way)-1]
}

// withoutLast closes and drops the last descriptor. Above the root is the root.
func withoutLast(way []int) []int {
	if len(way) == 0 {
		return way
	}
	unix.Close(way[len(way)-1]) //nolint:errcheck // nothing was written
	return way[:len(way)-1]
}

// step opens a name in a directory. Of a symbolic link it returns the target and no
// descriptor.
func step(directory int, name string) (descriptor int, kind uint32, target string, err error) {
	err = uninterrupted(func() (err error) {
		descriptor, err = unix.Openat(directory, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, 0, "", err
	}
	var file unix.Stat_t
	if err = unix.Fstat(descriptor, &file); err == nil && file.Mode&unix.S_IFMT != unix.S_IFLNK {
		return descriptor, file.Mode & unix.S_IFMT, "", nil
	}
	defer unix.Close(descriptor) //nolint:errcheck // nothing was written
	if err != nil {
		return -1, 0, "", err
	}
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(descriptor, "", text)
	return -1, unix.S_IFLNK, string(text[:max(n, 0)]), err
}

// openDirectory opens a directory under root, to list it and to make files in it.
func openDirectory(root, path string) (*os.File, error) {
	if isWholeHost(root) {
		return os.OpenFile(path, unix.O_DIRECTORY, 0)
	}
	inside, err := openInside(root, path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(inside) //nolint:errcheck // nothing was written
	var descriptor int
	err = uninterrupted(func() (err error) {
		descriptor, err = unix.Openat(inside, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("opening: %w", err)
	}
	return os.NewFile(uintptr(descriptor), path), nil
}

// uninterrupted repeats a system call that a signal interrupted. Go's scheduler
// sends signals, and file systems in user space and NFS end the call then.
func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
