package main

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHostHasARootOfItsOwn checks the host on which a week of incidents happens.
func TestHostHasARootOfItsOwn(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("mounts a file system: needs root")
	}
	b := &bench{TB: t, ctx: t.Context(), folder: t.TempDir()}
	h, hasRoot, err := newHost(b)
	if err != nil || !hasRoot {
		t.Fatalf("its own root file system: %v, %v", hasRoot, err)
	}
	var u unix.Statfs_t
	if err := unix.Statfs(filepath.Join(h.Root, "var/lib/kubelet"), &u); err != nil || int64(u.Blocks)*u.Bsize != rootSize { //nolint:gosec // small
		t.Errorf("the paths of the default configuration are on %d bytes, want %d: %v", int64(u.Blocks)*u.Bsize, rootSize, err) //nolint:gosec // small
	}
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(h.Root); err != nil || len(left) != 0 {
		t.Errorf("after its end the host has %v, %v", left, err)
	}
}
