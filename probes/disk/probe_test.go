package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/probetest"
)

const mib, gib = 1 << 20, 1 << 30

// half is a file system of which a half is free.
func half(path string) fileSystem {
	return fileSystem{path, 1, 50 * gib, 100 * gib, 500_000, 1_000_000}
}

// nearlyFull is a file system with 4.1 GiB of 78.2 GiB available.
func nearlyFull(path string) fileSystem {
	return fileSystem{path, 2, 4402341478, 83966610637, 500_000, 1_000_000}
}

func fewInodes(path string) fileSystem {
	return fileSystem{path, 3, 50 * gib, 100 * gib, 21_500, 1_000_000}
}

func TestDiskJudge(t *testing.T) {
	t.Parallel()
	stuck := []silence{{"/mnt", 3 * time.Second}}
	broken := probes.Because("StatfsFailed", "looking at the file system of /srv: stale file handle")
	withoutInodes := fileSystem{"/", 4, 50 * gib, 100 * gib, 0, 0}
	for _, test := range []struct {
		name            string
		s               sample
		level           probes.Level
		reason, message string
		severity        int
	}{
		{"plenty", sample{fileSystems: []fileSystem{half("/")}}, probes.OK, "SpaceSufficient",
			"available 50 GiB of 100 GiB (50.0 %) on /, threshold 10 %", 0},
		{"the worst decides", sample{fileSystems: []fileSystem{half("/"), nearlyFull("/var/lib/kubelet"), fewInodes("/x")}}, probes.Degraded, "InodesLow",
			"free 21500 of 1000000 inodes (2.1 %) on /x, threshold 5 %", 78},
		{"space", sample{fileSystems: []fileSystem{nearlyFull("/var/lib/kubelet"), half("/")}}, probes.Degraded, "SpaceLow",
			"available 4.1 GiB of 78.2 GiB (5.2 %) on /var/lib/kubelet, threshold 10 %", 73},
		{"at the threshold", sample{fileSystems: []fileSystem{{"/", 1, 10 * gib, 100 * gib, 0, 0}}}, probes.OK, "SpaceNearThreshold", "(10.0 %)", 50},
		{"a byte less", sample{fileSystems: []fileSystem{{"/", 1, 10*gib - 1, 100 * gib, 0, 0}}}, probes.Degraded, "SpaceLow", "(9.9 %)", 50},
		{"at the clear threshold", sample{fileSystems: []fileSystem{{"/", 1, 15 * gib, 100 * gib, 0, 0}}}, probes.OK, "SpaceSufficient", "(15.0 %)", 0},
		{"inodes near", sample{fileSystems: []fileSystem{{"/", 1, 90 * gib, 100 * gib, 60, 1000}}}, probes.OK, "InodesNearThreshold", "60 of 1000 inodes", 30},
		{"no inodes counted", sample{fileSystems: []fileSystem{withoutInodes}}, probes.OK, "SpaceSufficient", "50.0 %", 0},
		{"full", sample{fileSystems: []fileSystem{{"/", 1, 0, gib, 0, 0}}}, probes.Degraded, "SpaceLow", "available 0 B of 1 GiB (0.0 %)", 100},
		{"no inodes left", sample{fileSystems: []fileSystem{{"/", 1, gib, gib, 0, 9}}}, probes.Degraded, "InodesLow", "free 0 of 9", 100},
		{"without size", sample{fileSystems: []fileSystem{{"/proc", 1, 0, 0, 0, 0}}}, probes.Unknown, "NoFileSystem", "", 0},
		{"nothing there", sample{}, probes.Unknown, "NoFileSystem", "none of the paths", 0},
		{"no answer hides behind no OK", sample{fileSystems: []fileSystem{half("/")}, silent: stuck}, probes.Unknown, "StatfsBlocked", "no answer from /mnt for 3 s", 0},
		{"no answer hides no trouble", sample{fileSystems: []fileSystem{nearlyFull("/")}, silent: stuck}, probes.Degraded, "SpaceLow", "5.2 %", 73},
		{"all troubles are named", sample{troubles: []error{broken}, silent: stuck}, probes.Unknown, "StatfsFailed", "/srv: stale file handle; no answer from /mnt for 3 s", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := someDisk.judge(test.s)
			probetest.Check(t, o, test.level, test.reason, test.message)
			if o.Severity != test.severity {
				t.Errorf("severity %d, want %d", o.Severity, test.severity)
			}
		})
	}
}

func TestDiskIsMonotone(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	for range 5 {
		thresholds := Thresholds{AvailablePercent: 1 + 30*random.Float64(), InodesPercent: 1 + 30*random.Float64(), ClearFactor: 1 + random.Float64()}
		size := gib + random.Uint64N(1<<44)
		probetest.Monotone(t, func(available uint64) probes.Observation {
			return thresholds.judge(sample{fileSystems: []fileSystem{half("/"), {"/a", 2, available, size, 1, 1}}})
		}, size)
		probetest.Monotone(t, func(free uint64) probes.Observation {
			return thresholds.judge(sample{fileSystems: []fileSystem{{"/a", 2, 1, 1, free, size}}})
		}, size)
	}
}

// nowhere is a host without procfs.
var nowhere = probes.Host{Root: "/", Proc: "testdata/none"}

// fakeDisk is a probe whose paths answer as usage says.
func fakeDisk(paths []string, usage func(path string) (fileSystem, error)) *Probe {
	d := New(nowhere, paths, someDisk)
	d.samplePath = func(_, path string) (pathSample, error) {
		f, err := usage(path)
		return pathSample{fileSystem: f}, err
	}
	return d
}

func TestDiskReadsEachDeviceOnce(t *testing.T) {
	t.Parallel()
	d := fakeDisk([]string{"/", "/same", "/missing", "/other"}, func(path string) (fileSystem, error) {
		switch path {
		case "/missing":
			return fileSystem{}, &fs.PathError{Op: "stat", Path: path, Err: syscall.ENOENT}
		case "/other":
			return nearlyFull(""), nil
		}
		return half(""), nil
	})
	s := d.read(t.Context())
	if want := []fileSystem{half("/"), nearlyFull("/other")}; !slices.Equal(s.fileSystems, want) || s.troubles != nil || s.silent != nil {
		t.Errorf("got %+v, want %+v", s, want)
	}
}

func TestDiskTroubleIsUnknown(t *testing.T) {
	t.Parallel()
	for _, trouble := range []error{syscall.EACCES, syscall.ESTALE, syscall.ENOTCONN, errors.New("odd")} {
		d := fakeDisk([]string{"/", "/mnt"}, func(path string) (fileSystem, error) {
			if path == "/mnt" {
				return fileSystem{}, trouble
			}
			return half(path), nil
		})
		probetest.Check(t, probetest.Observe(t, d), probes.Unknown, "StatfsFailed", "/mnt: "+trouble.Error())
	}
}

// TestDiskThatHangs follows one path through a hang: nothing waits past the
// deadline, nothing is started twice, and the end of the hang ends the trouble.
func TestDiskThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		hung, release := true, make(chan struct{})
		d := fakeDisk([]string{"/", "/mnt"}, func(path string) (fileSystem, error) {
			if path == "/mnt" {
				calls.Add(1)
				if hung {
					<-release
				}
				return nearlyFull(path), nil
			}
			return half(path), nil
		})
		look := func() probes.Observation {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			o := d.Observe(ctx)
			if took := time.Since(start); took > time.Second {
				t.Fatalf("took %v with a deadline of 1 s", took)
			}
			return o
		}
		probetest.Check(t, look(), probes.Unknown, "StatfsBlocked", "no answer from /mnt for 1 s")
		synctest.Wait()
		before := runtime.NumGoroutine()
		for range 100 {
			start := time.Now()
			probetest.Check(t, look(), probes.Unknown, "StatfsBlocked", "no answer from /mnt for")
			if took := time.Since(start); took > 0 {
				t.Fatalf("waited %v for a call that had its time", took)
			}
			time.Sleep(time.Second)
		}
		probetest.Check(t, look(), probes.Unknown, "StatfsBlocked", "no answer from /mnt for 101 s")
		synctest.Wait()
		// Other tests may end meanwhile; a goroutine for each look would show.
		if after := runtime.NumGoroutine(); calls.Load() != 1 || after > before+50 {
			t.Errorf("%d calls, %d goroutines before and %d after", calls.Load(), before, after)
		}
		hung = false
		close(release)
		synctest.Wait()
		probetest.Check(t, look(), probes.Degraded, "SpaceLow", "on /mnt")
		if calls.Load() != 2 {
			t.Errorf("%d calls instead of 2", calls.Load())
		}
	})
}

func TestDiskThatHangsHidesNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		d := fakeDisk([]string{"/mnt", "/"}, func(path string) (fileSystem, error) {
			if path == "/mnt" {
				<-release
			}
			return nearlyFull(path), nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		probetest.Check(t, d.Observe(ctx), probes.Degraded, "SpaceLow", "on /,")
		close(release)
	})
}

func TestDiskPathsAreUnderTheRoot(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "var", "lib"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"inside": "var/lib", "absolute": "/proc", "upward": "../../proc"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	h := probes.Host{Root: root}
	for path, wrong := range map[string]string{
		"/": "", "/var/lib": "", "/inside": "", "/proc": "NoFileSystem", "/var/none": "NoFileSystem",
		"/absolute": "StatfsFailed", "/upward": "StatfsFailed", "/../proc": "StatfsFailed",
	} {
		o := probetest.Observe(t, New(h, []string{path}, someDisk))
		if wrong == "" && o.Level == probes.Unknown || wrong != "" && o.Reason != wrong {
			t.Errorf("%s: %+v, want reason %q", path, o, wrong)
		}
	}
	o := probetest.Observe(t, New(probes.Host{Root: filepath.Join(root, "none")}, []string{"/"}, someDisk))
	probetest.Check(t, o, probes.Unknown, "StatfsFailed", "opening the host's root")
}

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
		{"beyond all bytes", unix.Statfs_t{Frsize: 4096, Blocks: most, Bfree: most, Bavail: most}, fileSystem{}, "impossible"},
		{"proc", unix.Statfs_t{}, fileSystem{}, ""},
	} {
		got, err := fromStatfs(&test.u)
		if got != test.want || (err == nil) != (test.err == "") || !strings.Contains(fmt.Sprint(err), test.err) {
			t.Errorf("%s: %+v, %v", test.name, got, err)
		}
	}
}

// checkCertain is check for an Observation that is proof of trouble.
func checkCertain(t testing.TB, o probes.Observation, reason, inMessage string) {
	t.Helper()
	if !o.Certain {
		t.Errorf("not certain: %+v", o)
	}
	o.Certain = false
	probetest.Check(t, o, probes.Degraded, reason, inMessage)
}

// kubeletOn is the mount of the kubelet's directory, with these flags.
func kubeletOn(fsType string, readOnly, superReadOnly bool) mount {
	return mount{point: "/var/lib/kubelet", fsType: fsType, source: "/dev/sda1", readOnly: readOnly, superReadOnly: superReadOnly}
}

func TestDiskJudgesMounts(t *testing.T) {
	t.Parallel()
	const path = "/var/lib/kubelet"
	emergency, shutdown := kubeletOn("ext4", false, false), kubeletOn("ext4", false, false)
	emergency.emergency, shutdown.shutdown = true, true
	odd := kubeletOn("ext4", false, true)
	odd.source = "/dev/a\nb\x1b[1m"
	for _, test := range []struct {
		name            string
		m               mountSample
		level           probes.Level
		certain         bool
		reason, message string
	}{
		{"writable", mountSample{path, kubeletOn("ext4", false, false), false}, probes.OK, false, "SpaceSufficient", ""},
		{"not known", mountSample{path: path}, probes.OK, false, "SpaceSufficient", ""},
		{"read-only root of an immutable system", mountSample{"/", mount{point: "/", fsType: "squashfs", readOnly: true, superReadOnly: true}, false}, probes.OK, false, "SpaceSufficient", ""},
		{"squashfs mounted without ro", mountSample{"/", mount{point: "/", fsType: "squashfs", superReadOnly: true}, false}, probes.OK, false, "SpaceSufficient", ""},
		{"read-only root of a container", mountSample{"/", mount{point: "/", fsType: "overlay", source: "overlay", readOnly: true}, false}, probes.OK, false, "SpaceSufficient", ""},
		{"error remount", mountSample{path, kubeletOn("ext4", false, true), true}, probes.Degraded, true, "FileSystemReadOnly",
			"ext4 of /var/lib/kubelet (/dev/sda1) turned read-only"},
		{"somebody's remount", mountSample{path, kubeletOn("ext4", true, true), true}, probes.Degraded, false, "FileSystemReadOnly",
			"ext4 of /var/lib/kubelet (/dev/sda1) turned read-only"},
		{"somebody's remount of the mount", mountSample{path, kubeletOn("xfs", true, false), true}, probes.Degraded, false, "MountReadOnly",
			"the mount of /var/lib/kubelet (/dev/sda1) turned read-only"},
		{"turned, and the mounts cannot be read", mountSample{path, mount{}, true}, probes.Degraded, false, "FileSystemReadOnly",
			"the file system of /var/lib/kubelet turned read-only"},
		{"as after an error, from the start", mountSample{path, kubeletOn("btrfs", false, true), false}, probes.OK, false, "FileSystemReadOnlyFromStart",
			"btrfs of /var/lib/kubelet (/dev/sda1) has been read-only since the start, and its mount is not"},
		{"emergency, even from the start", mountSample{path, emergency, false}, probes.Degraded, true, "FileSystemReadOnly", "emergency_ro"},
		{"shut down", mountSample{path, shutdown, false}, probes.Degraded, true, "FileSystemShutDown", "ext4 of /var/lib/kubelet (/dev/sda1) was shut down"},
		{"odd name", mountSample{path, odd, true}, probes.Degraded, true, "FileSystemReadOnly", "(/dev/a?b?[1m)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := someDisk.judge(sample{fileSystems: []fileSystem{half("/")}, mounts: []mountSample{test.m}})
			if o.Certain != test.certain || o.Hysteresis != (test.reason == "FileSystemReadOnlyFromStart") {
				t.Errorf("%+v", o)
			}
			o.Certain = false
			probetest.Check(t, o, test.level, test.reason, test.message)
		})
	}
}

func TestDiskJudgesSilenceAndFailures(t *testing.T) {
	t.Parallel()
	thresholds := someDisk
	thresholds.BlockedAfter = 30 * time.Second
	silent := func(long time.Duration) sample {
		return sample{fileSystems: []fileSystem{half("/")}, silent: []silence{{"/var/lib/kubelet", long}}}
	}
	probetest.Check(t, thresholds.judge(silent(5*time.Second)), probes.Unknown, "StatfsBlocked", "no answer from /var/lib/kubelet for 5 s")
	probetest.Check(t, thresholds.judge(silent(30*time.Second-1)), probes.Unknown, "StatfsBlocked", "")
	o := thresholds.judge(silent(42 * time.Second))
	probetest.Check(t, o, probes.Degraded, "FileSystemBlocked", "no answer from /var/lib/kubelet for 42 s, threshold 30 s")
	probetest.Check(t, someDisk.judge(silent(time.Hour)), probes.Unknown, "StatfsBlocked", "no answer from /var/lib/kubelet for 60 min")

	broken := func(inRow int) probes.Observation {
		return thresholds.judge(sample{failed: []failure{{"/srv", inRow, fmt.Errorf("statx: %w", syscall.EIO)}}})
	}
	probetest.Check(t, broken(1), probes.Degraded, "FileSystemFailed", "looking at the file system of /srv: input/output error")
	checkCertain(t, broken(3), "FileSystemFailed", "input/output error, 3 times in a row")
}

// TestDiskIsMonotoneInTime: the longer a thing takes, the worse.
func TestDiskIsMonotoneInTime(t *testing.T) {
	t.Parallel()
	thresholds := someDisk
	thresholds.BlockedAfter = 30 * time.Second
	for name, judge := range map[string]func(time.Duration) probes.Observation{
		"silence": func(d time.Duration) probes.Observation { return thresholds.judge(sample{silent: []silence{{"/", d}}}) },
		"write": func(d time.Duration) probes.Observation {
			return thresholds.judge(sample{writes: []writeSample{{Write: someWrite, writeAnswer: writeAnswer{took: d}}}})
		},
		"write without an answer": func(d time.Duration) probes.Observation {
			return thresholds.judge(sample{writes: []writeSample{{Write: someWrite, silence: d}}})
		},
	} {
		last := probes.Observation{}
		for d := time.Millisecond; d < 20*time.Hour; d += d / 7 {
			o := judge(d)
			probetest.WellFormed(t, o)
			if o.Severity < last.Severity || (o.Level == probes.Degraded) != (o.Severity >= 50) || last.Level == probes.Degraded && o.Level != probes.Degraded {
				t.Fatalf("%s of %v: %+v after %+v", name, d, o, last)
			}
			last = o
		}
		if last.Severity < 98 {
			t.Errorf("%s of 20 h: %+v", name, last)
		}
	}
}

// TestDiskGivesABlockedPathUp: first Unknown, then a finding; a file system
// that answers too late every time is no better than one that never does.
func TestDiskGivesABlockedPathUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var slow atomic.Int64
		slow.Store(int64(7 * time.Second))
		d := fakeDisk([]string{"/mnt"}, func(path string) (fileSystem, error) {
			time.Sleep(time.Duration(slow.Load()))
			return half(path), nil
		})
		d.thresholds.BlockedAfter = 30 * time.Second
		look := func() probes.Observation {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			return d.Observe(ctx)
		}
		for range 3 {
			probetest.Check(t, look(), probes.Unknown, "StatfsBlocked", "no answer from /mnt")
			time.Sleep(5 * time.Second)
		}
		probetest.Check(t, look(), probes.Degraded, "FileSystemBlocked", "no answer from /mnt for 35 s, threshold 30 s")
		slow.Store(int64(time.Second))
		time.Sleep(10 * time.Second)
		probetest.Check(t, look(), probes.OK, "SpaceSufficient", "")
	})
}

// TestDiskFailuresInARow: two are proof, and one good look between them begins
// anew.
func TestDiskFailuresInARow(t *testing.T) {
	t.Parallel()
	var err error
	d := fakeDisk([]string{"/"}, func(path string) (fileSystem, error) { return half(path), err })
	for _, broken := range []error{syscall.EIO, syscall.EUCLEAN, syscall.EBADMSG} {
		err = broken
		probetest.Check(t, d.Observe(t.Context()), probes.Degraded, "FileSystemFailed", broken.Error())
		checkCertain(t, d.Observe(t.Context()), "FileSystemFailed", "2 times in a row")
		err = nil
		probetest.Check(t, d.Observe(t.Context()), probes.OK, "SpaceSufficient", "")
	}
}

// TestDiskRemembersWhatWasWritable follows one path through flags, devices and
// its absence.
func TestDiskRemembersWhatWasWritable(t *testing.T) {
	t.Parallel()
	look, err := pathSample{fileSystem: half("")}, error(nil)
	d := New(nowhere, []string{"/x"}, someDisk)
	d.samplePath = func(string, string) (pathSample, error) { return look, err }
	d.readMounts = func([]wantedMount) []pathMounts {
		return []pathMounts{{own: mount{point: "/x", fsType: "ext4", source: "/dev/sdb", superReadOnly: look.readOnly, readOnly: look.readOnly}}}
	}
	turned := func(readOnly, bad bool) {
		t.Helper()
		look.readOnly = readOnly
		want, reason, message := probes.OK, "SpaceSufficient", ""
		if bad {
			want, reason, message = probes.Degraded, "FileSystemReadOnly", "ext4 of /x (/dev/sdb) turned read-only"
		}
		probetest.Check(t, d.Observe(t.Context()), want, reason, message)
	}
	turned(true, false) // from the start
	turned(false, false)
	turned(true, false) // it was meant so when first seen
	look.device = 7     // another file system
	turned(false, false)
	turned(true, true)
	turned(true, true)
	turned(false, false)
	turned(true, true)
	err = fs.ErrNotExist // unmounted, with its directory
	probetest.Check(t, d.Observe(t.Context()), probes.Unknown, "NoFileSystem", "")
	err = nil
	turned(true, false)
}

// TestDiskReadsMountsSeldom: mountinfo can be long.
func TestDiskReadsMountsSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads, readOnly := 0, false
		d := New(nowhere, []string{"/"}, someDisk)
		d.samplePath = func(string, string) (pathSample, error) {
			return pathSample{fileSystem: half(""), readOnly: readOnly}, nil
		}
		d.readMounts = func([]wantedMount) []pathMounts {
			reads++
			return make([]pathMounts, 1)
		}
		for range 60 { // ten minutes
			d.Observe(t.Context())
			time.Sleep(10 * time.Second)
		}
		if reads != 20 {
			t.Errorf("%d reads in 60 looks and 10 min, want one every 30 s", reads)
		}
		reads, readOnly = 0, true
		d.Observe(t.Context())
		d.Observe(t.Context())
		if reads != 2 {
			t.Errorf("%d reads in two looks at what turned read-only", reads)
		}
	})
}

// TestDiskMountsThatHang: a mountinfo that gives no answer costs nothing but
// what it would have told.
func TestDiskMountsThatHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release, reads := make(chan struct{}), atomic.Int64{}
		d := fakeDisk([]string{"/"}, func(path string) (fileSystem, error) { return half(path), nil })
		d.readMounts = func([]wantedMount) []pathMounts {
			reads.Add(1)
			<-release
			return make([]pathMounts, 1)
		}
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			probetest.Check(t, d.Observe(ctx), probes.OK, "SpaceSufficient", "")
			cancel()
			time.Sleep(time.Second)
		}
		if reads.Load() != 1 {
			t.Errorf("%d reads at once", reads.Load())
		}
		close(release)
	})
}

func BenchmarkDiskObserve(b *testing.B) {
	look := func(b *testing.B, h probes.Host, everyLook bool) {
		d := New(h, []string{"/", "/dev/shm", "/sys/fs/cgroup"}, someDisk)
		b.ReportAllocs()
		for b.Loop() {
			if everyLook {
				d.mountsAt = time.Time{}
			}
			if o := d.Observe(b.Context()); o.Level == probes.Unknown {
				b.Fatal(o)
			}
		}
	}
	b.Run("mounts every 30 s", func(b *testing.B) { look(b, thisHost, false) })
	b.Run("mounts every look", func(b *testing.B) { look(b, thisHost, true) })
	b.Run("5000 mounts every look", func(b *testing.B) { look(b, probes.Host{Root: "/", Proc: procOfManyPods(b)}, true) })
}

var someDisk = Thresholds{AvailablePercent: 10, InodesPercent: 5, ClearFactor: 1.5}
