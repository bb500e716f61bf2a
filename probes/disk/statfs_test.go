package disk

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDiskAgreesWithStatfs compares with the system call itself.
func TestDiskAgreesWithStatfs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var want syscall.Statfs_t
	if err := syscall.Statfs(dir, &want); err != nil {
		t.Fatal(err)
	}
	got, err := samplePath("/", dir)
	if err != nil {
		t.Fatal(err)
	}
	block := float64(want.Frsize)
	available := float64(want.Bavail) * block
	size := float64(want.Blocks-want.Bfree+want.Bavail) * block
	const slack = 256 * mib // of others that write meanwhile
	if max(available, float64(got.available))-min(available, float64(got.available)) > slack ||
		max(size, float64(got.size))-min(size, float64(got.size)) > slack {
		t.Errorf("%d available of %d, want %.0f of %.0f", got.available, got.size, available, size)
	}
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if device := info.Sys().(*syscall.Stat_t).Dev; got.device != device {
		t.Errorf("device %d instead of %d", got.device, device)
	}
	if got.inodesTotal != want.Files && got.inodesTotal != 0 || got.readOnly || got.mountID == 0 {
		t.Errorf("%d inodes instead of %d, read-only %t, mount %d", got.inodesTotal, want.Files, got.readOnly, got.mountID)
	}
}

func TestFromStatfs(t *testing.T) {
	t.Parallel()
	const most = 1<<64 - 1
	for _, test := range []struct {
		name string
		u    unix.Statfs_t
		want fileSystem
		err  string
	}{
		{"the superuser's reserve is not counted", unix.Statfs_t{Frsize: 10, Blocks: 10, Bfree: 4, Bavail: 2, Files: 9, Ffree: 4},
			fileSystem{available: 20, size: 80, inodesFree: 4, inodesTotal: 9}, ""},
		{"blocks are counted in f_frsize", unix.Statfs_t{Bsize: 1 << 20, Frsize: 10, Blocks: 10, Bfree: 4, Bavail: 4},
			fileSystem{available: 40, size: 100}, ""},
		{"no f_frsize", unix.Statfs_t{Bsize: 10, Blocks: 10, Bfree: 4, Bavail: 4}, fileSystem{available: 40, size: 100}, ""},
		{"btrfs", unix.Statfs_t{Frsize: 10, Blocks: 10, Bfree: 4, Bavail: 4}, fileSystem{available: 40, size: 100}, ""},
		{"available beyond free", unix.Statfs_t{Frsize: 10, Blocks: 10, Bfree: 4, Bavail: 9}, fileSystem{available: 90, size: 100}, ""},
		{"ceph", unix.Statfs_t{Frsize: 10, Blocks: 10, Bfree: 4, Bavail: 4, Files: 7, Ffree: most}, fileSystem{available: 40, size: 100}, ""},
		{"more free than there is", unix.Statfs_t{Frsize: 10, Blocks: 10, Bfree: 15, Bavail: 2}, fileSystem{}, "impossible"},
		{"available beyond the size", unix.Statfs_t{Frsize: 10, Blocks: 10, Bfree: 4, Bavail: 11}, fileSystem{}, "impossible"},
		// The superuser's reserve is used: what is left of it is negative, which statfs(2)
		// cannot say. The client of NFS shifts what a server said in bytes.
		{"negative", unix.Statfs_t{Frsize: 4096, Blocks: 100, Bfree: 3, Bavail: most - 1}, fileSystem{available: 0, size: 97 * 4096}, ""},
		{"negative, by NFS", unix.Statfs_t{Frsize: 1 << 20, Blocks: 100, Bfree: 3, Bavail: (most - 5<<20) >> 20}, fileSystem{available: 0, size: 97 << 20}, ""},
		{"more negative than it is large", unix.Statfs_t{Frsize: 4096, Blocks: 100, Bfree: 3, Bavail: most - 101}, fileSystem{}, "impossible"},
		{"beyond all bytes", unix.Statfs_t{Frsize: 4096, Blocks: most, Bfree: most, Bavail: most}, fileSystem{}, "impossible"},
		{"proc", unix.Statfs_t{}, fileSystem{}, ""},
	} {
		got, err := fromStatfs(&test.u)
		if got != test.want || (err == nil) != (test.err == "") || !strings.Contains(fmt.Sprint(err), test.err) {
			t.Errorf("%s: %+v, %v", test.name, got, err)
		}
	}
}
