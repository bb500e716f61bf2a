package hostfile

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
)

// InPrivatePIDNamespace says whether the reader's PID namespace is not the
// host's. Newer kernels keep a pid_max for each PID namespace (Linux 6.14, "pid:
// allow pid_max to be set per pid namespace"), and that of another namespace says
// nothing of the host's. Nor do its processes. The host's namespace has a fixed inode
// (PROC_PID_INIT_INO in include/linux/proc_ns.h). Where the link cannot be read,
// the namespace counts as the host's.
func InPrivatePIDNamespace(proc string) bool {
	const initial = "pid:[4026531836]"
	link, err := os.Readlink(filepath.Join(proc, "self", "ns", "pid"))
	return err == nil && link != initial
}

// IsMountPoint says whether something is mounted over one file of procfs for the reader, as
// LXCFS is in containers. Where mountinfo cannot be read, nothing is.
func IsMountPoint(proc, name string) bool {
	mounts, err := os.Open(filepath.Join(proc, "self", "mountinfo"))
	if err != nil {
		return false
	}
	defer mounts.Close() //nolint:errcheck // nothing was written
	point := filepath.Join(proc, name)
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		// The fifth field of proc_pid_mountinfo(5).
		if fields := strings.SplitN(lines.Text(), " ", 6); len(fields) == 6 && fields[4] == point {
			return true
		}
	}
	return false
}
