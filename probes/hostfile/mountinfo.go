package hostfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// MostMountinfo is how much of mountinfo is read: all of it at the kernel's limit
// of 100,000 mounts in a namespace (fs.mount-max), with about 600 bytes for each.
const MostMountinfo = 64 << 20

// MountLines gives each line of a mountinfo, without its newline, to take until that returns
// false. A line is good only during the call. An error says that not all lines came: the text
// cannot be read to its end, or has more than MostMountinfo.
//
// The kernel makes the lines as they are read, in the order in which the mounts were made.
// Those of pods come last. On a host with 5,000 mounts the first page takes 0.03 ms, and the
// whole file 4 ms and more. A line that is cut off or has more than 64 KiB is passed over.
func MountLines(r io.Reader, take func(line []byte) (goOn bool)) error {
	bounded := &io.LimitedReader{R: r, N: MostMountinfo}
	// An overlay's line lists all its layers. mount(2) allows a page of them,
	// fsconfig(2) more.
	buffered := bufio.NewReaderSize(bounded, 64<<10)
	for {
		line, err := buffered.ReadSlice('\n')
		tooLong := false
		for errors.Is(err, bufio.ErrBufferFull) {
			tooLong = true
			_, err = buffered.ReadSlice('\n')
		}
		switch {
		case errors.Is(err, io.EOF) && bounded.N == 0:
			return fmt.Errorf("more than %d bytes", MostMountinfo)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case !tooLong && !take(line[:len(line)-1]):
			return nil
		}
	}
}

// IsMountPoint says whether something is mounted over one file of procfs for the reader, as
// LXCFS is in containers. Where mountinfo cannot be read, nothing is.
func IsMountPoint(proc, name string) (is bool) {
	mounts, err := os.Open(filepath.Join(proc, "self", "mountinfo"))
	if err != nil {
		return false
	}
	defer mounts.Close() //nolint:errcheck // nothing was written
	point := filepath.Join(proc, name)
	err = MountLines(mounts, func(line []byte) bool {
		// The fifth field of proc_pid_mountinfo(5).
		fields := bytes.SplitN(line, []byte(" "), 6)
		is = len(fields) == 6 && string(fields[4]) == point
		return !is
	})
	return is && err == nil
}
