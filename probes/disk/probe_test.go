package disk

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

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

// TestBadSampleTellsWhatWasWritten since the path was healthy, which near is not.
func TestBadSampleTellsWhatWasWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var left uint64
		d := fakeDisk([]string{"/"}, func(string) (fileSystem, error) { return fileSystem{"", 1, left, 100 * gib, 0, 0}, nil })
		for _, step := range []struct {
			left    uint64
			message string
		}{
			{8 * gib, "threshold 10 %"}, // it was never seen healthy
			{30 * gib, "threshold 10 %"},
			{12 * gib, "threshold 10 %"},
			{8 * gib, "threshold 10 %; 22 GiB written in 20 s"},
			{30 * gib, "threshold 10 %"},
			{9 * gib, "threshold 10 %; 21 GiB written in 10 s"},
		} {
			left = step.left
			if o := observeBriefly(t, d); !strings.HasSuffix(o.Message, step.message) {
				t.Errorf("%d GiB left: %q, want %q", step.left/gib, o.Message, step.message)
			}
			time.Sleep(10 * time.Second)
		}
	})
}

// TestTroubleIsThePathsOwn: it makes the condition Unknown where no path can be read.
func TestTroubleIsThePathsOwn(t *testing.T) {
	t.Parallel()
	for _, trouble := range []error{syscall.EACCES, syscall.ENAMETOOLONG, syscall.ELOOP, errors.New("odd")} {
		usage := func(path string) (fileSystem, error) {
			if path == "/mnt" {
				return fileSystem{}, trouble
			}
			return half(path), nil
		}
		o := probetest.Observe(t, fakeDisk([]string{"/mnt"}, usage))
		probetest.Check(t, o, probes.Unknown, "StatfsFailed", "looking at the file system of /mnt: "+trouble.Error())
		o = probetest.Observe(t, fakeDisk([]string{"/mnt", "/"}, usage))
		probetest.Check(t, o, probes.OK, "SpaceSufficient", "threshold 10 %; unknown: looking at the file system of /mnt: "+trouble.Error())
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
		d.thresholds.BlockedAfter = time.Hour
		observe := func() probes.Observation {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			o := d.Observe(ctx)
			if took := time.Since(start); took > time.Second {
				t.Fatalf("took %v with a deadline of 1 s", took)
			}
			return o
		}
		probetest.Check(t, observe(), probes.Unknown, "StatfsBlocked", "the file system of /mnt: no answer for 1 s")
		synctest.Wait()
		before := runtime.NumGoroutine()
		for range 100 {
			start := time.Now()
			probetest.Check(t, observe(), probes.Unknown, "StatfsBlocked", "the file system of /mnt: no answer for")
			if took := time.Since(start); took > 0 {
				t.Fatalf("waited %v for a call that had its time", took)
			}
			time.Sleep(time.Second)
		}
		probetest.Check(t, observe(), probes.Unknown, "StatfsBlocked", "the file system of /mnt: no answer for 101 s")
		synctest.Wait()
		// Other tests may end meanwhile; a goroutine for each sample would show.
		if after := runtime.NumGoroutine(); calls.Load() != 1 || after > before+50 {
			t.Errorf("%d calls, %d goroutines before and %d after", calls.Load(), before, after)
		}
		hung = false
		close(release)
		synctest.Wait()
		probetest.Check(t, observe(), probes.Degraded, "SpaceLow", "on the file system of /mnt")
		if calls.Load() != 2 {
			t.Errorf("%d calls instead of 2", calls.Load())
		}
	})
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
		observe := func() probes.Observation {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			return d.Observe(ctx)
		}
		for range 3 {
			probetest.Check(t, observe(), probes.Unknown, "StatfsBlocked", "the file system of /mnt: no answer")
			time.Sleep(5 * time.Second)
		}
		probetest.Check(t, observe(), probes.Degraded, "FileSystemBlocked", "the file system of /mnt: no answer for 35 s, threshold 30 s")
		slow.Store(int64(time.Second))
		time.Sleep(10 * time.Second)
		probetest.Check(t, observe(), probes.OK, "SpaceSufficient", "")
	})
}

// A read from the disk of this program that hangs is given up like a path.
func TestProgramsDiskThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release, reads := make(chan struct{}), atomic.Int64{}
		d := fakeDisk([]string{"/"}, func(path string) (fileSystem, error) { return half(path), nil })
		d.thresholds.BlockedAfter = 30 * time.Second
		d.sampleProgram = func(string, string) (pathSample, error) {
			reads.Add(1)
			<-release
			return pathSample{}, nil
		}
		for second := range 40 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			o := d.Observe(ctx)
			cancel()
			if want := map[bool]string{true: "FileSystemBlocked", false: "StatfsBlocked"}[second >= 29]; o.Reason != want {
				t.Errorf("after %d s: %+v", second, o)
			}
			time.Sleep(time.Second)
		}
		close(release)
		synctest.Wait()
		probetest.Check(t, observeBriefly(t, d), probes.OK, "SpaceSufficient", "")
		if reads.Load() != 2 {
			t.Errorf("%d reads", reads.Load())
		}
	})
}

// Where nothing can be read directly, nothing is known of the disk.
func TestFileThatCannotBeReadDirectlyTellsNothing(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]error{"/proc/self/status": syscall.EINVAL, "/none": syscall.ENOENT, t.TempDir(): syscall.EINVAL} {
		if _, err := readDirect(path); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
		if s, err := sampleDisk("", path); err != nil || s != (pathSample{}) {
			t.Errorf("%s: %+v, %v", path, s, err)
		}
	}
}

// TestDiskFailuresInARow: two are proof, and one good sample between them begins
// anew.
func TestDiskFailuresInARow(t *testing.T) {
	t.Parallel()
	var err error
	d := fakeDisk([]string{"/"}, func(path string) (fileSystem, error) { return half(path), err })
	for _, broken := range []error{
		syscall.EIO, syscall.EUCLEAN, syscall.EBADMSG, syscall.ENODEV, syscall.ENXIO, syscall.ENOLINK, syscall.EREMOTEIO, syscall.ENODATA,
		syscall.EBADE, syscall.EILSEQ,
		syscall.ENOTCONN, syscall.ESHUTDOWN, syscall.ECONNABORTED, syscall.ESTALE, syscall.ETIMEDOUT, syscall.EHOSTDOWN,
	} {
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
	now, err := pathSample{fileSystem: half("")}, error(nil)
	d := New(nowhere, []string{"/x"}, someDisk)
	d.samplePath = func(string, string) (pathSample, error) { return now, err }
	d.mounts.read = func([]wantedMount) []pathMounts {
		return []pathMounts{{own: mount{point: "/x", fsType: "ext4", source: "/dev/sdb", superReadOnly: now.readOnly, readOnly: now.readOnly}}}
	}
	turned := func(readOnly, bad bool) {
		t.Helper()
		now.readOnly = readOnly
		want, reason, message := probes.OK, "SpaceSufficient", ""
		if readOnly {
			reason = "ReadOnlyByDesign"
		}
		if bad {
			want, reason, message = probes.Degraded, "FileSystemReadOnly", "the file system of /x, /dev/sdb ext4: turned read-only"
		}
		probetest.Check(t, d.Observe(t.Context()), want, reason, message)
	}
	turned(true, false) // from the start
	turned(false, false)
	turned(true, false) // it was meant so when first seen
	now.device = 7      // another file system
	turned(false, false)
	turned(true, true)
	turned(true, true)
	turned(false, false)
	turned(true, true)
	now.fsid[0] = 7 // another file system, whose device has the number of the last one
	turned(true, false)
	now.kind = unix.XFS_SUPER_MAGIC // and another, whose fsid is made of that number
	turned(false, false)
	turned(true, true)
	now.kind = unix.EXT4_SUPER_MAGIC
	turned(true, false)
	now.kind = unix.XFS_SUPER_MAGIC
	turned(false, false)
	turned(true, true)
	now.size *= 2 // resized
	turned(true, true)
	now.mountID = 7 // the same file system, mounted again
	turned(true, true)
	err = fs.ErrNotExist // unmounted, with its directory
	probetest.Check(t, d.Observe(t.Context()), probes.Unknown, "NoFileSystem", "")
	err = nil
	turned(true, false)
}

// TestSpaceOfWhatNobodyWritesTo: the root of an immutable system is full by design, and
// so is its file system of images. Behind a read-only mount others may write.
func TestSpaceOfWhatNobodyWritesTo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mounts pathMounts
		reason string
	}{
		"an image":                   {pathMounts{own: mount{point: "/", fsType: "ext4", readOnly: true, superReadOnly: true}}, "SpaceSufficient"},
		"a container's root":         {pathMounts{own: mount{point: "/", fsType: "overlay", upper: "/up", readOnly: true}, beneath: mount{point: "/up", fsType: "ext4"}}, "SpaceLow"},
		"writable":                   {pathMounts{own: mount{point: "/", fsType: "ext4"}}, "SpaceLow"},
		"the mounts cannot be found": {pathMounts{}, "SpaceLow"},
	} {
		d := New(nowhere, []string{"/", "/var/lib/kubelet"}, someDisk)
		d.samplePath = func(_, path string) (pathSample, error) {
			if path == "/" {
				return pathSample{fileSystem: fileSystem{device: 7, size: gib, inodesTotal: 9}, readOnly: true}, nil
			}
			return pathSample{fileSystem: half("")}, nil
		}
		d.mounts.read = func([]wantedMount) []pathMounts { return []pathMounts{test.mounts, {}} }
		for range 2 {
			if o := probetest.Observe(t, d); o.Reason != test.reason {
				t.Errorf("%s: %+v, want %s", name, o, test.reason)
			}
		}
		for _, q := range d.Measures(nil) {
			if isJudged := q.Path == "/"; isJudged && test.reason != "SpaceLow" {
				t.Errorf("%s: told %+v", name, q)
			}
		}
	}
}

// TestAnotherFileSystemBeneathBeginsAnew: the first one could be written.
func TestAnotherFileSystemBeneathBeginsAnew(t *testing.T) {
	t.Parallel()
	beneath := mount{id: 31, device: unix.Mkdev(8, 17), point: "/var/lib/containerd", fsType: "xfs", source: "/dev/sdb1"}
	d := New(nowhere, []string{"/"}, someDisk)
	d.samplePath = func(string, string) (pathSample, error) { return pathSample{fileSystem: half("")}, nil }
	d.mounts.read = func([]wantedMount) []pathMounts {
		return []pathMounts{{own: mount{point: "/", fsType: "overlay", upper: "/var/lib/containerd/17/fs"}, beneath: beneath}}
	}
	check := func(level probes.Level) {
		t.Helper()
		d.mounts.matter = true
		if o := probetest.Observe(t, d); o.Level != level {
			t.Errorf("got %+v, want %v", o, level)
		}
	}
	check(probes.OK)
	beneath.readOnly, beneath.superReadOnly = true, true
	check(probes.Degraded)
	beneath.device = unix.Mkdev(8, 33)
	check(probes.OK) // meant to be
}

// TestLateMountsOfAnotherMountDoNotCount: the answer is of the mount that was there
// when the reading began.
func TestLateMountsOfAnotherMountDoNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := pathSample{fileSystem: half(""), mountID: 31}
		var quick atomic.Bool
		d := New(nowhere, []string{"/"}, someDisk)
		d.samplePath = func(string, string) (pathSample, error) { return now, nil }
		d.mounts.read = func(wanted []wantedMount) []pathMounts {
			if !quick.Load() {
				time.Sleep(time.Minute)
			}
			return []pathMounts{{own: mount{point: "/", fsType: "ext4", emergency: wanted[0].mountID == 31}}}
		}
		probetest.Check(t, observeBriefly(t, d), probes.OK, "SpaceSufficient", "")
		now.mountID, now.fsid[0] = 40, 7
		quick.Store(true)
		time.Sleep(54 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		time.Sleep(2 * time.Second) // the answer about mount 31 is there
		probetest.Check(t, d.Observe(ctx), probes.OK, "SpaceSufficient", "")
		o := observeBriefly(t, d)
		probetest.Check(t, o, probes.OK, "SpaceSufficient", "")
		if d.paths[0].mounts.own.point != "/" {
			t.Error("the mounts are not read again")
		}
	})
}

// TestAnotherFileSystemHastensWrites: the last result is of the one before.
func TestAnotherFileSystemHastensWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		writes, now := 0, pathSample{fileSystem: half("")}
		d := New(nowhere, []string{"/scratch"}, someDisk, someWrite)
		d.samplePath = func(string, string) (pathSample, error) { return now, nil }
		d.writers[0].write = func() writeAnswer { writes++; return writeAnswer{} }
		for i, want := range []int{1, 1, 1, 2, 2} {
			if i == 2 {
				now.fsid[0] = 7
			}
			observeBriefly(t, d)
			if writes != want {
				t.Errorf("%d writes with sample %d, want %d", writes, i, want)
			}
			time.Sleep(time.Second)
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
		d.mounts.read = func([]wantedMount) []pathMounts {
			reads.Add(1)
			<-release
			return make([]pathMounts, 1)
		}
		for i := range 100 {
			begin := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			probetest.Check(t, d.Observe(ctx), probes.OK, "SpaceSufficient", "")
			cancel()
			if took := time.Since(begin); i > 0 && took > 0 {
				t.Fatalf("waited %v for a reading that had its time", took)
			}
			time.Sleep(time.Second)
		}
		if reads.Load() != 1 {
			t.Errorf("%d reads at once", reads.Load())
		}
		close(release)
	})
}
