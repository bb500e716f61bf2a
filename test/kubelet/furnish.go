package kubelet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const diskFile = "disk.img"

// Places of the room that are not the host's.
const (
	libDir = "/var/lib"
	logDir = "/var/log"
	runDir = "/run"
)

// tunables are the settings of the kernel that a kubelet changes at start
// (setupKernelTunables in pkg/kubelet/cm of Kubernetes). They are the host's:
// the room has files in their place.
func tunables() []string {
	return []string{
		"vm/overcommit_memory", "vm/panic_on_oom",
		"kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
	}
}

// furnish mounts in the room what the kubelet is not to share with the host. It
// runs in the room's thread.
//
// /var/lib is an ext4 file system in a file: the eviction manager does not find
// the device of every root file system, and this one can be filled. No block
// of it is reserved, so that what is available is what is free.
func furnish(dir string, size int64) error {
	image := filepath.Join(dir, diskFile)
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, size)); err != nil {
		return fmt.Errorf("make a disk: %w", err)
	}
	if err := quietly("mkfs.ext4", "-q", "-F", "-m", "0", image); err != nil {
		return err
	}
	if err := quietly("mount", "-o", "loop", image, libDir); err != nil {
		return fmt.Errorf("mount a disk: %w", err)
	}
	for _, folder := range []string{rootDir, containerdDir, filepath.Join(libDir, "log")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount(filepath.Join(libDir, "log"), logDir, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", logDir, err)
	}
	if err := unix.Mount("tmpfs", runDir, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount %s: %w", runDir, err)
	}
	return coverTunables(filepath.Join(runDir, "tunables"))
}

// coverTunables puts files with the same content in the place of the kernel's.
func coverTunables(dir string) error {
	for _, name := range tunables() {
		setting := filepath.Join("/proc/sys", name)
		value, err := os.ReadFile(setting)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("protect the host's settings: %w", err)
		}
		cover := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(cover), 0o755), os.WriteFile(cover, value, 0o644)); err != nil {
			return fmt.Errorf("protect the host's settings: %w", err)
		}
		if err := unix.Mount(cover, setting, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("protect %s: %w", setting, err)
		}
	}
	return nil
}

// clear unmounts the disk, so that its file can be removed now. It runs in the
// room's thread. A process that still lives in the room keeps it; the kernel
// unmounts it when that process has ended.
func clear() error {
	for _, place := range []string{runDir, logDir, libDir} {
		err := unix.Unmount(place, unix.MNT_DETACH)
		if err != nil && !errors.Is(err, unix.EINVAL) { // not mounted
			return fmt.Errorf("unmount %s: %w", place, err)
		}
	}
	return nil
}
