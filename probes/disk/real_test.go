package disk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// The tests of this file make real trouble: loop-mounted file systems that are
// full, read-only, frozen, failed. They run in a process of their own with its
// own mount namespace, so that no mount outlives them.

const ownMountsEnv = "TAINTLET_TEST_OWN_MOUNTS"

// inOwnMounts says whether this process has its own mount namespace. If not,
// it runs the test in one that has, and skips it where that cannot be.
func inOwnMounts(t *testing.T, tools ...string) bool {
	t.Helper()
	if os.Getenv(ownMountsEnv) != "" {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("this host lacks a tool: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=100s")
	child.Env = append(os.Environ(), ownMountsEnv+"=1")
	// Go makes all mounts private after an unshare.
	child.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	output, err := child.CombinedOutput()
	if errors.Is(err, unix.EPERM) {
		t.Skipf("a mount namespace of its own is not allowed here: %v", err)
	}
	if err != nil {
		t.Fatalf("in its own mount namespace: %v\n%s", err, output)
	}
	if strings.Contains(string(output), "--- SKIP") || testing.Verbose() {
		t.Logf("in its own mount namespace:\n%s", output)
	}
	return false
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if output, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, output)
	}
}

// loopMount makes an ext4 of 64 MiB in a file and mounts it. The loop device
// goes with the mount.
func loopMount(t *testing.T, mkfs ...string) (point string) {
	t.Helper()
	point = t.TempDir()
	mountImage(t, newImage(t, mkfs...), point, "errors=remount-ro")
	return point
}

// newImage makes an ext4 of 64 MiB in a file.
func newImage(t *testing.T, mkfs ...string) (image string) {
	t.Helper()
	image = filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 64*mib); err != nil {
		t.Fatal(err)
	}
	run(t, "mkfs.ext4", append(append([]string{"-q", "-m", "0"}, mkfs...), image)...)
	return image
}

// mountImage mounts an image until the test ends or somebody unmounts it.
func mountImage(t *testing.T, image, point, options string) {
	t.Helper()
	run(t, "mount", "-o", "loop,"+options, image, point)
	t.Cleanup(func() {
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			t.Errorf("unmounting %s: %v", point, err)
		}
	})
}

func unmount(t *testing.T, point string) {
	t.Helper()
	if err := unix.Unmount(point, 0); err != nil {
		t.Fatalf("unmounting %s: %v", point, err)
	}
}

var thisHost = probes.Host{Root: "/", Proc: "/proc", Sys: "/sys"}

// realDisk watches the paths and writes to the first with every sample.
func realDisk(paths ...string) *Probe {
	t := someDisk
	t.BlockedAfter = 2 * time.Second
	return New(thisHost, paths, t, Write{Directory: paths[0], Slow: 20 * time.Second})
}

// observe takes a sample with a deadline of one second, and checks that it holds.
func observe(t *testing.T, d *Probe) probes.Observation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	start := time.Now()
	o := d.Observe(ctx)
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %v with a deadline of 1 s", took)
	}
	t.Logf("%v %d certain=%t %s: %s", o.Level, o.Severity, o.Certain, o.Reason, o.Message)
	return o
}

// noMoreGoroutines waits until there are no more than before.
func noMoreGoroutines(t *testing.T, before int) {
	t.Helper()
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%d goroutines, and %d before", runtime.NumGoroutine(), before)
}

func TestDiskUnderRealPressure(t *testing.T) {
	t.Parallel()
	if !inOwnMounts(t, "mkfs.ext4", "mount") {
		return
	}
	for _, test := range []struct {
		name string
		test func(*testing.T)
	}{
		{"space", realSpace}, {"inodes", realInodes}, {"read-only", realReadOnly}, {"frozen", realFrozen},
		{"error", realError}, {"dead disk", realDeadDisk},
		{"shutdown", realShutdown}, {"shutdown of XFS", realShutdownOfXFS}, {"container root", realContainerRoot}, {"linked upper directory", realLinkedUpper}, {"no answer", realSilence},
		{"another file system", realAnother}, {"resized", realResize},
	} {
		t.Run(test.name, test.test)
	}
}

func realSpace(t *testing.T) {
	point := loopMount(t)
	d := realDisk(point)
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "on the file system of ")
	var usage unix.Statfs_t
	if err := unix.Statfs(point, &usage); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(point, "big"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // closed below
	total := int64(usage.Blocks-usage.Bfree+usage.Bavail) * usage.Frsize
	if err := unix.Fallocate(int(file.Fd()), 0, 0, int64(usage.Bavail)*usage.Frsize-total*5/100); err != nil {
		t.Fatal(err)
	}
	probetest.Check(t, observe(t, d), probes.Degraded, "SpaceLow", ", threshold 10 %")
	if err := unix.Fallocate(int(file.Fd()), 0, 0, int64(usage.Bavail)*usage.Frsize); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("not full: %v", err)
	}
	probetest.Check(t, observe(t, d), probes.Degraded, "SpaceLow", "available 0 B of ")
	writer := New(thisHost, nil, someDisk, Write{Directory: point})
	probetest.Check(t, observe(t, writer), probes.Degraded, "WriteNoSpace", "writing 4 KiB to "+point+": no space left on device")
	if err := errors.Join(file.Close(), os.Remove(file.Name())); err != nil {
		t.Fatal(err)
	}
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "on the file system of ")
}

func realInodes(t *testing.T) {
	point := loopMount(t, "-N", "64")
	d := New(thisHost, []string{point}, someDisk)
	writer := New(thisHost, nil, someDisk, Write{Directory: point})
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "")
	made := 0
	for ; ; made++ {
		err := os.WriteFile(filepath.Join(point, fmt.Sprint("f", made)), nil, 0o600)
		if errors.Is(err, unix.ENOSPC) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	probetest.Check(t, observe(t, d), probes.Degraded, "InodesLow", "free 0 of 64 inodes (0.0 %) on the file system of "+point+", ")
	probetest.Check(t, observe(t, writer), probes.Degraded, "WriteNoSpace", "")
	for i := range made {
		if err := os.Remove(filepath.Join(point, fmt.Sprint("f", i))); err != nil {
			t.Fatal(err)
		}
	}
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "")
	probetest.Check(t, observe(t, writer), probes.OK, "WritePrompt", "")
}

func realReadOnly(t *testing.T) {
	point := loopMount(t)
	d, writer := realDisk(point), New(thisHost, nil, someDisk, Write{Directory: point})
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "")
	run(t, "mount", "-o", "remount,ro", point)
	probetest.Check(t, observe(t, d), probes.Degraded, "FileSystemReadOnly", "ext4: ")
	checkCertain(t, observe(t, d), "FileSystemReadOnly", "read-only file system, 2 times in a row")
	probetest.Check(t, observe(t, writer), probes.Degraded, "FileSystemReadOnly", "writing 4 KiB to "+point+": read-only file system")
	checkCertain(t, observe(t, writer), "FileSystemReadOnly", "2 times in a row")

	fromStart := New(thisHost, []string{point}, someDisk)
	probetest.Check(t, observe(t, fromStart), probes.OK, "ReadOnlyByDesign", ": read-only and cannot fill up")

	run(t, "mount", "-o", "remount,rw", point)
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "")
	probetest.Check(t, observe(t, writer), probes.OK, "WritePrompt", "")
	probetest.Check(t, observe(t, fromStart), probes.OK, "SpaceSufficient", "")

	run(t, "mount", "-o", "remount,bind,ro", point)
	probetest.Check(t, observe(t, New(thisHost, []string{point}, someDisk)), probes.OK, "SpaceSufficient", "")
	probetest.Check(t, observe(t, New(thisHost, nil, someDisk, Write{Directory: point})), probes.Unknown, "WriteDirectoryUnusable",
		"read-only file system (its mount is, its file system is not)")
	probetest.Check(t, observe(t, d), probes.Degraded, "MountReadOnly", ": the mount turned read-only")
	run(t, "mount", "-o", "remount,bind,rw", point)
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "")
}

func realFrozen(t *testing.T) {
	point, other := loopMount(t), loopMount(t)
	d := realDisk(point, other)
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "")
	directory, err := os.Open(point)
	if err != nil {
		t.Fatal(err)
	}
	defer directory.Close()                     //nolint:errcheck // nothing was written
	const freeze, thaw = 0xC0045877, 0xC0045878 // FIFREEZE and FITHAW of linux/fs.h
	if err := unix.IoctlSetInt(int(directory.Fd()), freeze, 0); err != nil {
		t.Fatalf("freezing: %v", err)
	}
	frozen := true
	unfreeze := func() {
		if err := unix.IoctlSetInt(int(directory.Fd()), thaw, 0); frozen && err != nil {
			t.Errorf("thawing: %v", err)
		}
		frozen = false
	}
	defer unfreeze()
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	s := d.read(ctx)
	if !s.paths[0].answered || !s.paths[1].answered || len(s.writes) != 1 || s.writes[0].silence <= 0 {
		t.Errorf("the other paths did not answer: %+v", s)
	}
	probetest.Check(t, observe(t, d), probes.Unknown, "WritePending", "writing 4 KiB to the file system of "+point+", /dev/loop")
	d.thresholds.BlockedAfter = time.Second // which has passed
	probetest.Check(t, observe(t, d), probes.Degraded, "WriteBlocked", "writing 4 KiB to the file system of "+point+", /dev/loop")
	for range 50 {
		d.Observe(t.Context()) // waits for nothing
	}
	noMoreGoroutines(t, before+1)
	unfreeze()
	noMoreGoroutines(t, before)
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "")
	if left := names(t, point); len(left) != 1 || left[0] != "lost+found" {
		t.Errorf("%q is left", left)
	}
}

// realError makes the kernel find an error in a file system that is mounted
// with errors=remount-ro. The next sample shows it, also without writes.
func realError(t *testing.T) {
	point := loopMount(t)
	d, withoutWrites := realDisk(point), New(thisHost, []string{point}, someDisk)
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "")
	probetest.Check(t, observe(t, withoutWrites), probes.OK, "SpaceSufficient", "")
	failFileSystem(t, point)
	withoutWrites.mounts.at, d.mounts.at = time.Time{}, time.Time{} // emergency_ro is in mountinfo only
	o := observe(t, withoutWrites)
	if m := mountNow(t, point); m.emergency || m.superReadOnly { // else only writes show it
		checkCertain(t, o, "FileSystemReadOnly", " ext4: ")
		checkCertain(t, observe(t, d), "FileSystemReadOnly", " ext4: ")
		fromStart := New(thisHost, []string{point}, someDisk)
		if m.emergency {
			checkCertain(t, observe(t, fromStart), "FileSystemReadOnly", "emergency_ro")
		}
	}
	checkCertain(t, func() probes.Observation { observe(t, d); return observe(t, d) }(), "FileSystemReadOnly", "")
	writer := New(thisHost, nil, someDisk, Write{Directory: point})
	probetest.Check(t, observe(t, writer), probes.Degraded, "FileSystemReadOnly", "read-only file system")
	checkCertain(t, observe(t, writer), "FileSystemReadOnly", "2 times in a row")
}

// realDeadDisk takes the disk away beneath a file system, as one that was pulled out: all
// that answers from memory answers as before.
func realDeadDisk(t *testing.T) {
	disk, point := loopMount(t), t.TempDir()
	image := filepath.Join(disk, "image")
	run(t, "cp", newImage(t, "-b", "1024"), image)
	mountImage(t, image, point, "rw")
	file := filepath.Join(point, "program")
	run(t, "cp", "/bin/sh", file)
	run(t, "sync", "-f", file)
	d := New(thisHost, []string{point}, someDisk)
	d.program.name = file
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "")
	if d.program.last.device != d.paths[0].last.device {
		t.Fatal("nothing was read from the disk")
	}
	shutDown(t, disk)
	probetest.Check(t, observe(t, d), probes.Degraded, "FileSystemFailed", "input/output error")
	checkCertain(t, observe(t, d), "FileSystemFailed", "2 times in a row")
}

// failFileSystem makes ext4 believe that it found an error.
func failFileSystem(t *testing.T, point string) {
	t.Helper()
	trigger := filepath.Join("/sys/fs/ext4", filepath.Base(mountNow(t, point).source), "trigger_fs_error")
	if err := os.WriteFile(trigger, []byte("taintlet's test"), 0); err != nil {
		t.Skipf("this kernel makes no error to order: %v", err)
	}
}

func mountNow(t *testing.T, point string) mount {
	t.Helper()
	return find(readAll(t, "/proc/self/mountinfo"), above(point))
}

func realShutdown(t *testing.T) {
	point := loopMount(t)
	d, withoutWrites := realDisk(point), New(thisHost, []string{point}, someDisk)
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "")
	probetest.Check(t, observe(t, withoutWrites), probes.OK, "SpaceSufficient", "")
	shutDown(t, point)
	probetest.Check(t, observe(t, d), probes.Degraded, "WriteFailed", " ext4: input/output error")
	o := observe(t, d)
	withoutWrites.mounts.at = time.Time{} // as after mountsSeldom at most, since reading takes long on a busy machine
	late := observe(t, withoutWrites)
	if mountNow(t, point).shutdown {
		checkCertain(t, o, "FileSystemShutDown", " ext4: ")
		checkCertain(t, late, "FileSystemShutDown", " ext4: ")
	} else {
		checkCertain(t, o, "WriteFailed", "2 times in a row")
	}
}

// realShutdownOfXFS: XFS says so itself, with the next sample.
func realShutdownOfXFS(t *testing.T) {
	if _, err := exec.LookPath("mkfs.xfs"); err != nil {
		t.Skipf("this host lacks a tool: %v", err)
	}
	image, point := filepath.Join(t.TempDir(), "image"), t.TempDir()
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 320*mib)); err != nil { // XFS takes no less than 300 MiB
		t.Fatal(err)
	}
	run(t, "mkfs.xfs", "-q", image)
	mountImage(t, image, point, "rw")
	d := New(thisHost, []string{point, "/"}, someDisk)
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "")
	shutDown(t, point)
	probetest.Check(t, observe(t, d), probes.Degraded, "FileSystemFailed", "the file system of "+point+", ")
	checkCertain(t, observe(t, d), "FileSystemFailed", "2 times in a row")
}

// shutDown makes a file system stop, as the kernel does when its device is gone.
func shutDown(t *testing.T, point string) {
	t.Helper()
	directory, err := os.Open(point)
	if err != nil {
		t.Fatal(err)
	}
	defer directory.Close()     //nolint:errcheck // nothing was written
	const shutdown = 0x8004587D // EXT4_IOC_SHUTDOWN of linux/ext4.h, XFS_IOC_GOINGDOWN of XFS
	const withoutFlushing = 0x2 // EXT4_GOING_FLAGS_NOLOGFLUSH, XFS_FSOP_GOING_FLAGS_NOLOGFLUSH
	if err := unix.IoctlSetPointerInt(int(directory.Fd()), shutdown, withoutFlushing); err != nil {
		t.Skipf("this kernel does not shut the file system down: %v", err)
	}
}

// realAnother mounts other file systems at the path, the last one read-only on purpose.
// They get the numbers of the one before.
func realAnother(t *testing.T) {
	point, first, second, third := t.TempDir(), newImage(t), newImage(t), newImage(t)
	mountImage(t, first, point, "errors=remount-ro")
	d := New(thisHost, []string{point}, someDisk)
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "")
	before := d.paths[0].last
	failFileSystem(t, point)
	d.mounts.at = time.Time{}
	if o := observe(t, d); o.Level != probes.Degraded {
		t.Errorf("after an error: %+v", o)
	}
	unmount(t, point)
	mountImage(t, second, point, "rw")
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "")
	unmount(t, point)
	mountImage(t, third, point, "ro")
	probetest.Check(t, observe(t, d), probes.OK, "ReadOnlyByDesign", "")
	if after := d.paths[0].last; after.device != before.device || after.mountID != before.mountID {
		t.Log("this time the numbers were others")
	}
}

// realResize changes the size of a file system while it is mounted. It stays the one
// that could be written.
func realResize(t *testing.T) {
	point := mountTmpfs(t)
	d := realDisk(point)
	d.writers = nil
	resize := func(options string) {
		t.Helper()
		run(t, "mount", "-o", "remount,"+options, point)
	}
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "of 1 MiB")
	if err := os.WriteFile(filepath.Join(point, "full"), make([]byte, mib-16<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	probetest.Check(t, observe(t, d), probes.Degraded, "SpaceLow", "of 1 MiB")
	resize("size=8m")
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "of 8 MiB")
	resize("size=1m")
	probetest.Check(t, observe(t, d), probes.Degraded, "SpaceLow", "of 1 MiB")
	resize("size=16m,ro")
	probetest.Check(t, observe(t, d), probes.Degraded, "FileSystemReadOnly", "turned read-only")
	resize("rw")
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "of 16 MiB")
}

// realContainerRoot watches an overlay that is read-only by its mount, as in a
// container, and lies on a file system that fails.
func realContainerRoot(t *testing.T) {
	point, root := loopMount(t), filepath.Join(t.TempDir(), "root")
	for _, dir := range []string{root, filepath.Join(point, "lower"), filepath.Join(point, "upper"), filepath.Join(point, "work")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", point)
	if err := unix.Mount("overlay", root, "overlay", 0, options); err != nil {
		t.Skipf("no overlay here: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(root, unix.MNT_DETACH) }) //nolint:errcheck // goes with the process
	run(t, "mount", "-o", "remount,bind,ro", root)
	// Process 1 of the pod's host is this one.
	d := New(hostOfOwnMounts(t), []string{root}, someDisk)
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "on the file system of ")
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "on the file system of ") // knows what is beneath
	// A quota of the overlay's directory does not count.
	if through := d.paths[0].mounts.through.point; through != point {
		t.Errorf("its space is that of %q, want %s", through, point)
	}
	failFileSystem(t, point)
	d.mounts.at = time.Time{}
	o := observe(t, d)
	if m := mountNow(t, point); !m.emergency && !m.superReadOnly {
		t.Skip("this kernel tells only a write that the file system failed")
	}
	checkCertain(t, o, "FileSystemReadOnly", "ext4: ")
}

// realLinkedUpper watches an overlay whose upper directory is named through a symbolic link to a
// full disk, as on a host with a read-only root. The name alone leads to that root.
func realLinkedUpper(t *testing.T) {
	disk, root, links := loopMount(t), filepath.Join(t.TempDir(), "root"), t.TempDir()
	link := filepath.Join(links, "link")
	err := os.Symlink(disk, link)
	for _, dir := range []string{root, filepath.Join(disk, "lower"), filepath.Join(disk, "upper"), filepath.Join(disk, "work")} {
		err = errors.Join(err, os.Mkdir(dir, 0o700))
	}
	if err != nil {
		t.Fatal(err)
	}
	options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", link)
	if err := unix.Mount("overlay", root, "overlay", 0, options); err != nil {
		t.Skipf("no overlay here: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(root, unix.MNT_DETACH) })     //nolint:errcheck // goes with the process
	run(t, "fallocate", "-l", "50M", filepath.Join(disk, "fill")) // of 53.4 MiB
	h := probes.Host{Root: "/", Proc: t.TempDir(), Sys: "/sys"}
	image := regexp.MustCompile(`(?m)^(\d+ \d+ \d+:\d+ / / ).*$`)
	for _, process := range []string{"1", "self"} {
		text := image.ReplaceAll(readAll(t, "/proc/self/mountinfo"), []byte("${1}ro,relatime - erofs /dev/dm-0 ro"))
		if err := errors.Join(os.Mkdir(filepath.Join(h.Proc, process), 0o700), os.WriteFile(filepath.Join(h.Proc, process, "mountinfo"), text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	d := New(h, []string{root}, someDisk)
	probetest.Check(t, observe(t, d), probes.Degraded, "SpaceLow", "")
	if beneath := d.paths[0].mounts.beneath.point; beneath != disk {
		t.Errorf("%s is beneath, want %s", beneath, disk)
	}
	// The mounts of process 1 do not have the disk. An overlay in our own mount namespace lies on
	// one of ours.
	probetest.Check(t, observe(t, New(thisHost, []string{root}, someDisk)), probes.Degraded, "SpaceLow", ", /dev/loop")
	if err := os.Remove(link); err != nil { // as in a pod, where the host's link is not seen
		t.Fatal(err)
	}
	probetest.Check(t, observe(t, New(h, []string{root}, someDisk)), probes.Degraded, "SpaceLow", "on the file system of "+root+", threshold")
}

// hostOfOwnMounts is this host as it would be if its process 1 had our mounts.
func hostOfOwnMounts(t *testing.T) probes.Host {
	t.Helper()
	h := probes.Host{Root: "/", Proc: t.TempDir(), Sys: "/sys"}
	for name, target := range map[string]string{"1": fmt.Sprintf("/proc/%d", os.Getpid()), "self": fmt.Sprintf("/proc/%d", os.Getpid()), "fs": "/proc/fs"} {
		if err := os.Symlink(target, filepath.Join(h.Proc, name)); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// realSilence watches a file system in user space whose server never answers.
func realSilence(t *testing.T) {
	server, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no FUSE here: %v", err)
	}
	point := t.TempDir()
	if err := unix.Mount("silent", point, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server)); err != nil {
		unix.Close(server) //nolint:errcheck // nothing was written
		t.Skipf("no FUSE here: %v", err)
	}
	closed := false
	hangUp := func() {
		if !closed {
			unix.Close(server) //nolint:errcheck // nothing was written
		}
		closed = true
	}
	t.Cleanup(func() {
		hangUp()
		unix.Unmount(point, unix.MNT_DETACH) //nolint:errcheck // goes with the process
	})
	before := runtime.NumGoroutine()
	d := realDisk("/", point)
	d.writers = nil
	probetest.Check(t, observe(t, d), probes.Unknown, "StatfsBlocked", "the file system of "+point+": no answer for ")
	for range 50 {
		d.Observe(t.Context()) // waits for nothing
	}
	noMoreGoroutines(t, before+1)
	time.Sleep(time.Second)
	probetest.Check(t, observe(t, d), probes.Degraded, "FileSystemBlocked", "the file system of "+point+": no answer for ")
	hangUp()
	noMoreGoroutines(t, before)
	o := observe(t, d)
	for deadline := time.Now().Add(30 * time.Second); o.Reason != "FileSystemFailed" && time.Now().Before(deadline); {
		o = observe(t, d) // on a busy machine the kernel takes its time to let go
	}
	o.Certain = false
	probetest.Check(t, o, probes.Degraded, "FileSystemFailed", point+": transport endpoint is not connected")
}
