// Package hosts starts virtual machines that are Nodes of a control plane of
// test/cluster: Debian with its own kernel, systemd and containerd, a real kubelet, and
// taintlet as it is shipped. QEMU emulates the processors, so that it runs
// where machines cannot be nested, several times slower than a host.
package hosts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/taintlet/taintlet/test/process"
)

// guest is what a machine has besides Debian's packages.
//
//go:embed guest
var guest embed.FS

// Release is one of Debian.
type Release struct {
	Name string // of which the kernel is, such as bookworm
	// Userland is the release of all other packages; empty: the same one.
	Userland string
	// Arguments are of the kernel, besides the usual ones.
	Arguments string
}

// units are started at boot.
const units = "systemd-networkd shell state service-address containerd kubelet"

// mirror begins a line of apt's sources.
const mirror = "deb http://deb.debian.org/debian "

// diskSize is of a file with holes.
const diskSize = "6G"

func packages() []string {
	return []string{
		"initramfs-tools", "systemd", "systemd-sysv", "udev", "dbus", "kmod", "iproute2", "iptables", "conntrack", "procps",
		"e2fsprogs", "quota", "dmsetup", "containerd", "runc", "containernetworking-plugins", "python3-minimal",
	}
}

// image is a disk with a root file system that nobody writes, and what boots it.
type image struct{ disk, kernel, initrd string }

// buildImage makes the disk of a release from Debian's packages, some minutes long. It stays
// in the user's cache until the packages or the files in guest change.
func buildImage(ctx context.Context, progress io.Writer, release Release) (image, error) {
	if err := checkHost(); err != nil {
		return image{}, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return image{}, err
	}
	folder := filepath.Join(cache, "taintlet", "hosts")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return image{}, err
	}
	unlock, err := process.Lock(ctx, filepath.Join(folder, ".lock"), nil)
	if err != nil {
		return image{}, err
	}
	defer unlock()
	stamp, err := stampOf(release)
	if err != nil {
		return image{}, err
	}
	folder = filepath.Join(folder, release.Name)
	built := image{disk: filepath.Join(folder, "disk"), kernel: filepath.Join(folder, "vmlinuz"), initrd: filepath.Join(folder, "initrd.img")}
	if present, err := os.ReadFile(filepath.Join(folder, "stamp")); err == nil && string(present) == stamp {
		return built, nil
	}
	if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o755)); err != nil {
		return image{}, err
	}
	fmt.Fprintf(progress, "building the disk of Debian %s into %s; this takes some minutes\n", release.Name, folder)
	if err := built.make(ctx, folder, release); err != nil {
		return image{}, fmt.Errorf("build the disk of Debian %s: %w", release.Name, err)
	}
	return built, os.WriteFile(filepath.Join(folder, "stamp"), []byte(stamp), 0o644)
}

func (i image) make(ctx context.Context, folder string, release Release) error {
	root, files := filepath.Join(folder, "root"), filepath.Join(folder, "guest")
	if err := writeGuest(files); err != nil {
		return err
	}
	kernel, sources := "linux-image-amd64", []string(nil) // mmdebstrap's, with security updates
	if release.Userland != "" {
		kernel += "/" + release.Name
		sources = []string{mirror + release.Userland + " main", mirror + release.Name + " main"}
	}
	arguments := append([]string{
		"--variant=minbase", "--include=" + strings.Join(append(packages(), kernel), ","),
		"--customize-hook=cp -r " + files + "/. $1/ && mkdir -p $1/cargo && chroot $1 systemctl enable " + units,
		cmp.Or(release.Userland, release.Name), root,
	}, sources...)
	if _, err := process.Output(ctx, folder, nil, "mmdebstrap", arguments...); err != nil {
		return err
	}
	for from, to := range map[string]string{"vmlinuz-*": i.kernel, "initrd.img-*": i.initrd} {
		found, err := filepath.Glob(filepath.Join(root, "boot", from))
		if err != nil || len(found) != 1 {
			return fmt.Errorf("%d files boot/%s, want 1", len(found), from)
		}
		if err := os.Rename(found[0], to); err != nil {
			return err
		}
	}
	if _, err := process.Output(ctx, folder, nil, "mke2fs", "-q", "-t", "ext4", "-d", root, i.disk, diskSize); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(root), os.RemoveAll(files))
}

// writeGuest writes the files of guest into a folder. What is in an sbin can be run.
func writeGuest(folder string) error {
	return fs.WalkDir(guest, "guest", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(folder, strings.TrimPrefix(path, "guest"))
		if entry.IsDir() {
			return os.Mkdir(to, 0o755)
		}
		content, err := guest.ReadFile(path)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if strings.Contains(path, "/sbin/") {
			mode = 0o755
		}
		return os.WriteFile(to, content, mode)
	})
}

// stampOf changes when the disk has to be built again.
func stampOf(release Release) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, release.Name, release.Userland, packages(), units, diskSize)
	err := fs.WalkDir(guest, "guest", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := guest.ReadFile(path)
		fmt.Fprintf(hash, "%s %d\n%s", path, len(content), content)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil)), err
}

// checkHost says all that is missing at once, and how to get it.
func checkHost() error {
	if os.Geteuid() != 0 {
		return errors.New("it needs root")
	}
	var missing []string
	for _, program := range []string{"mmdebstrap", "mke2fs", "qemu-img", "qemu-system-x86_64"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("this host lacks %s; on Debian: apt-get install -y mmdebstrap e2fsprogs qemu-utils qemu-system-x86", strings.Join(missing, ", "))
}
