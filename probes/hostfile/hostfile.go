// Package hostfile reads the small text files in which the kernel describes the
// host, and its clocks, and makes calls to the host that may hang. A file that is cut off is an
// error.
package hostfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
)

// ErrCutOff says that a file's last line has no newline. The kernel ends every
// line of its text files with one. Without it the rest of that line, and any
// number of further lines, are missing.
var ErrCutOff = errors.New("cut off: the last line has no newline")

// CheckWhole returns ErrCutOff for a text whose last line has no newline.
func CheckWhole(text string) error {
	if text != "" && text[len(text)-1] != '\n' {
		return ErrCutOff
	}
	return nil
}

// mostBytes is the most that Read takes. The longest file that is read this way is
// meant to have about 150 KiB: nf_conntrack, with a line for each of a thousand CPUs.
const mostBytes = 1 << 20

// ErrTooLong says that a file is longer than any that the kernel makes of its kind.
var ErrTooLong = errors.New("longer than 1 MiB")

// Read reads a small file whole. One of more than 1 MiB is ErrTooLong.
//
// It does without os.File, which makes each file of /proc known to the poller and
// unknown again: four more system calls, as many as reading takes. Nearly all files
// fit into the first buffer, which lies on the stack.
func Read(path string) (string, error) {
	fd, err := Uninterrupted(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return "", &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	var first [2 << 10]byte
	data := first[:0]
	for len(data) <= mostBytes {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := Uninterrupted(func() (int, error) { return unix.Read(fd, data[len(data):cap(data)]) })
		switch {
		case err != nil:
			return "", &fs.PathError{Op: "read", Path: path, Err: err}
		case n == 0:
			return string(data), nil
		default:
			data = data[:len(data)+n]
		}
	}
	return "", &fs.PathError{Op: "read", Path: path, Err: ErrTooLong}
}

// Uninterrupted repeats a system call that a signal interrupted. Go's scheduler
// sends signals, and file systems in user space and NFS end the call then.
func Uninterrupted(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// Clock reads a clock of clock_gettime(2). It panics if the kernel does not have that clock. Linux
// has had CLOCK_BOOTTIME since 2.6.39, and the others for longer.
func Clock(id int32) time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(id, &at); err != nil {
		panic(fmt.Sprintf("clock %d: %v", id, err))
	}
	return time.Duration(at.Nano())
}

// Parse reads a file and parses it. An error's message names what, the content of the file. Its
// reason is thing, the file's name in CamelCase, followed by Unreadable or Garbled.
func Parse[T any](path, thing, what string, parse func(text string) (T, error)) (value T, err error) {
	text, err := Read(path)
	if err != nil {
		return value, probes.Because(thing+"Unreadable", "reading %s: %w", what, err)
	}
	if value, err = parse(text); err != nil {
		var none T
		return none, probes.Because(thing+"Garbled", "reading %s from %s: %w", what, path, err)
	}
	return value, nil
}

// ParseOptional reads and parses a file that a probe can do without. found is false, without an
// error, if the file is missing, switched off in the kernel (EOPNOTSUPP for PSI), or forbidden to the
// agent.
func ParseOptional[T any](path string, parse func(text string) (T, error)) (value T, found bool, err error) {
	text, err := Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EOPNOTSUPP):
		return value, false, nil
	case err != nil:
		return value, false, err
	}
	if value, err = parse(text); err != nil {
		var none T
		return none, false, fmt.Errorf("%s: %w", path, err)
	}
	return value, true, nil
}

// Excerpt quotes the start of a text that was not understood.
func Excerpt(text string) string { return fmt.Sprintf("%.40q", text) }

// InPrivatePIDNamespace says whether the reader's PID namespace is not the host's. Newer kernels
// keep a pid_max for each PID namespace (Linux 6.14, "pid: allow pid_max to be set per pid
// namespace"), and that of another namespace does not show the host's. Nor do its processes. The
// host's namespace has a fixed inode (PROC_PID_INIT_INO in include/linux/proc_ns.h). Where the link
// cannot be read, the namespace counts as the host's.
func InPrivatePIDNamespace(proc string) bool {
	const initial = "pid:[4026531836]"
	link, err := os.Readlink(filepath.Join(proc, "self", "ns", "pid"))
	return err == nil && link != initial
}
