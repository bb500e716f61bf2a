package disk

import (
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzStatfs checks that, whatever a file system says of itself, it is refused, or has no
// more left than it is large.
func FuzzStatfs(f *testing.F) {
	f.Add(int64(unix.EXT4_SUPER_MAGIC), int64(4096), int64(4096), uint64(1000), uint64(500), uint64(450), uint64(100), uint64(50))
	f.Add(int64(unix.NFS_SUPER_MAGIC), int64(0), int64(1<<20), uint64(1000), uint64(50), ^uint64(0)-9, uint64(0), uint64(0))
	f.Add(int64(unix.XFS_SUPER_MAGIC), int64(4096), int64(4096), uint64(1000), uint64(500), uint64(5000), uint64(1), uint64(2))
	f.Add(int64(0), int64(-1), int64(-1), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0))
	f.Add(int64(0x00c36400), int64(4096), int64(4<<20), uint64(1), uint64(2), uint64(3), uint64(7), ^uint64(0))
	f.Fuzz(func(t *testing.T, kind, fragment, block int64, blocks, free, available, inodes, inodesFree uint64) {
		u := &unix.Statfs_t{Type: kind, Frsize: fragment, Bsize: block, Blocks: blocks, Bfree: free, Bavail: available, Files: inodes, Ffree: inodesFree}
		fs, err := fromStatfs(u)
		if err == nil && (fs.available > fs.size || fs.inodesFree > fs.inodesTotal) {
			t.Errorf("%+v of %+v", fs, u)
		}
	})
}
