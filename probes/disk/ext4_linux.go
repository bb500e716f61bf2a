package disk

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// errorCount is how many errors ext4 has found in a file system. The count is kept
// on the disk: one above 0 may be years old.
type errorCount struct {
	device uint64
	// superblock tells one time that the file system was mounted from another;
	// 0: the count is not known.
	superblock uint64
	errors     uint64
}

// readErrors reads the error count of the ext4 on a device. It is not known of other
// file systems, and where sysfs cannot be read.
func readErrors(h probes.Host, device uint64) errorCount {
	name, ok := blockDevice(h, device)
	if !ok {
		return errorCount{}
	}
	file, err := os.Open(filepath.Join(h.Sys, "fs", "ext4", name, "errors_count"))
	if err != nil {
		return errorCount{}
	}
	defer file.Close() //nolint:errcheck // nothing was written
	// sysfs makes the file, with a new inode, each time the file system is mounted.
	info, err := file.Stat()
	if err != nil {
		return errorCount{}
	}
	inode, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errorCount{}
	}
	text, err := io.ReadAll(io.LimitReader(file, 64)) // more than a number takes
	digits, isWhole := strings.CutSuffix(string(text), "\n")
	if err != nil || !isWhole {
		return errorCount{}
	}
	errors, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return errorCount{}
	}
	return errorCount{device, inode.Ino, errors}
}

// blockDevice returns the kernel's name of a block device.
func blockDevice(h probes.Host, device uint64) (name string, ok bool) {
	if device == 0 || h.Sys == "" {
		return "", false
	}
	link := filepath.Join(h.Sys, "dev", "block", fmt.Sprintf("%d:%d", unix.Major(device), unix.Minor(device)))
	target, err := os.Readlink(link)
	return filepath.Base(target), err == nil
}

// stopsAtErrors says that an ext4 on a device gives up writing at the first error.
// mountinfo shows that only where it is not the file system's own default.
func stopsAtErrors(h probes.Host, fsType string, device uint64) bool {
	if !isExt4(fsType) {
		return false
	}
	name, ok := blockDevice(h, device)
	if !ok {
		return false
	}
	options, err := hostfile.Read(filepath.Join(h.Proc, "fs", "ext4", name, "options"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(options) {
		if line == "errors=remount-ro\n" {
			return true
		}
	}
	return false
}

// isExt4 says that a file system of that type is served by the kernel's ext4, which also
// serves its forerunners.
func isExt4(fsType string) bool { return fsType == "ext4" || fsType == "ext3" || fsType == "ext2" }

// errorGrowth remembers the errors of one file system since it was first seen.
type errorGrowth struct {
	first errorCount
	more  uint64 // errors since then
}

// follow takes a count, and says whether there are errors that were not there before.
// A count that is not known changes nothing.
func (g *errorGrowth) follow(now errorCount) (grew bool) {
	switch {
	case now.superblock == 0:
		return false
	case now.device != g.first.device || now.superblock != g.first.superblock || now.errors < g.first.errors:
		*g = errorGrowth{first: now}
		return false
	}
	more := now.errors - g.first.errors
	grew, g.more = more > g.more, more
	return grew
}
