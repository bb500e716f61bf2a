package disk

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/probetest"
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
		probetest.Check(t, observe(), probes.Unknown, "StatfsBlocked", "no answer from /mnt for 1 s")
		synctest.Wait()
		before := runtime.NumGoroutine()
		for range 100 {
			start := time.Now()
			probetest.Check(t, observe(), probes.Unknown, "StatfsBlocked", "no answer from /mnt for")
			if took := time.Since(start); took > 0 {
				t.Fatalf("waited %v for a call that had its time", took)
			}
			time.Sleep(time.Second)
		}
		probetest.Check(t, observe(), probes.Unknown, "StatfsBlocked", "no answer from /mnt for 101 s")
		synctest.Wait()
		// Other tests may end meanwhile; a goroutine for each sample would show.
		if after := runtime.NumGoroutine(); calls.Load() != 1 || after > before+50 {
			t.Errorf("%d calls, %d goroutines before and %d after", calls.Load(), before, after)
		}
		hung = false
		close(release)
		synctest.Wait()
		probetest.Check(t, observe(), probes.Degraded, "SpaceLow", "on /mnt")
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
			probetest.Check(t, observe(), probes.Unknown, "StatfsBlocked", "no answer from /mnt")
			time.Sleep(5 * time.Second)
		}
		probetest.Check(t, observe(), probes.Degraded, "FileSystemBlocked", "no answer from /mnt for 35 s, threshold 30 s")
		slow.Store(int64(time.Second))
		time.Sleep(10 * time.Second)
		probetest.Check(t, observe(), probes.OK, "SpaceSufficient", "")
	})
}

// TestDiskFailuresInARow: two are proof, and one good sample between them begins
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
	now, err := pathSample{fileSystem: half("")}, error(nil)
	d := New(nowhere, []string{"/x"}, someDisk)
	d.samplePath = func(string, string) (pathSample, error) { return now, err }
	d.readMounts = func([]wantedMount) []pathMounts {
		return []pathMounts{{own: mount{point: "/x", fsType: "ext4", source: "/dev/sdb", superReadOnly: now.readOnly, readOnly: now.readOnly}}}
	}
	turned := func(readOnly, bad bool) {
		t.Helper()
		now.readOnly = readOnly
		want, reason, message := probes.OK, "SpaceSufficient", ""
		if bad {
			want, reason, message = probes.Degraded, "FileSystemReadOnly", "ext4 of /x (/dev/sdb) turned read-only"
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
			t.Errorf("%d reads in 60 samples and 10 min, want one every 30 s", reads)
		}
		reads, readOnly = 0, true
		d.Observe(t.Context())
		d.Observe(t.Context())
		if reads != 2 {
			t.Errorf("%d reads in two samples of what turned read-only", reads)
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
	observe := func(b *testing.B, h probes.Host, everySample bool) {
		d := New(h, []string{"/", "/dev/shm", "/sys/fs/cgroup"}, someDisk)
		b.ReportAllocs()
		for b.Loop() {
			if everySample {
				d.mountsAt = time.Time{}
			}
			if o := d.Observe(b.Context()); o.Level == probes.Unknown {
				b.Fatal(o)
			}
		}
	}
	b.Run("mounts every 30 s", func(b *testing.B) { observe(b, thisHost, false) })
	b.Run("mounts every sample", func(b *testing.B) { observe(b, thisHost, true) })
	b.Run("5000 mounts every sample", func(b *testing.B) { observe(b, probes.Host{Root: "/", Proc: procOfManyPods(b)}, true) })
}
