package hostfile

import (
	"os"
	"path/filepath"
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
