package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// isWholeHost says that root is the root that the kernel resolves paths in anyway.
func isWholeHost(root string) bool { return filepath.Clean(root) == "/" }

// openInside opens the path as a process would whose root is root: an absolute
// symbolic link and .. stay inside. The descriptor is good for asking about the
// file and for resolving names in it (O_PATH). os.Root refuses absolute links, and
// openat2(2) is missing before Linux 5.6 and refused by security profiles older than it.
func openInside(root, path string) (descriptor int, err error) {
	if !isWholeHost(root) {
		path, err = walk(root, path)
	}
	if err == nil {
		// O_DIRECTORY makes the kernel mount what autofs mounts on demand.
		descriptor, err = openAt(path, unix.O_DIRECTORY)
	}
	if errors.Is(err, unix.ENOTDIR) && path != "" {
		descriptor, err = openAt(path, 0)
	}
	if err != nil {
		return -1, fmt.Errorf("opening: %w", err)
	}
	return descriptor, nil
}

// mostLinks is how many symbolic links a path may lead through, as in the kernel
// (MAXSYMLINKS in include/linux/namei.h).
const mostLinks = 40

// walk returns the name, without links, of what a path leads to inside a root. It may go
// astray where others rename directories at the same time.
func walk(root, path string) (name string, err error) {
	if _, err := os.Stat(root); err != nil {
		// Not wrapped, because a missing root is trouble, unlike a missing path in it.
		return "", fmt.Errorf("the host's root: %v", err) //nolint:errorlint // on purpose
	}
	inside, links := "/", 0 // inside has no links and is a directory, but for the last name
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		next := filepath.Join(inside, name)
		if name == "" || name == "." || name == ".." {
			inside = next
			continue
		}
		file, err := os.Lstat(filepath.Join(root, next))
		switch {
		case err != nil:
			return "", err
		case file.Mode()&fs.ModeSymlink == 0 && !file.IsDir() && len(rest) > 0:
			return "", unix.ENOTDIR
		case file.Mode()&fs.ModeSymlink == 0:
			inside = next
			continue
		}
		target, err := os.Readlink(filepath.Join(root, next))
		if links++; err == nil && links > mostLinks {
			err = unix.ELOOP
		}
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			inside = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return filepath.Join(root, inside), nil
}

// openAt opens a path in order to ask about the file.
func openAt(path string, flags int) (descriptor int, err error) {
	err = uninterrupted(func() (err error) {
		descriptor, err = unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
		return err
	})
	return descriptor, err
}

// openDirectory opens a directory under root, to make files in it.
func openDirectory(root, path string) (*os.Root, error) {
	if isWholeHost(root) {
		return os.OpenRoot(path)
	}
	name, err := walk(root, path)
	if err != nil {
		return nil, fmt.Errorf("opening: %w", err)
	}
	return os.OpenRoot(name)
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
