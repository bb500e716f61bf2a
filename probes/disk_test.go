package probes

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

	"github.com/shirou/gopsutil/v3/disk"
)

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
	stuck := because("StatfsBlocked", "looking at the file system of /mnt: no answer for 3s")
	broken := because("StatfsFailed", "looking at the file system of /srv: input/output error")
	withoutInodes := fileSystem{"/", 4, 50 * gib, 100 * gib, 0, 0}
	for _, test := range []struct {
		name            string
		s               diskSample
		level           Level
		reason, message string
		severity        int
	}{
		{"plenty", diskSample{[]fileSystem{half("/")}, nil}, OK, "SpaceSufficient",
			"available 50 GiB of 100 GiB (50.0 %) on /, threshold 10 %", 0},
		{"the worst decides", diskSample{[]fileSystem{half("/"), nearlyFull("/var/lib/kubelet"), fewInodes("/x")}, nil}, Degraded, "InodesLow",
			"free 21500 of 1000000 inodes (2.1 %) on /x, threshold 5 %", 78},
		{"space", diskSample{[]fileSystem{nearlyFull("/var/lib/kubelet"), half("/")}, nil}, Degraded, "SpaceLow",
			"available 4.1 GiB of 78.2 GiB (5.2 %) on /var/lib/kubelet, threshold 10 %", 73},
		{"at the threshold", diskSample{[]fileSystem{{"/", 1, 10 * gib, 100 * gib, 0, 0}}, nil}, OK, "SpaceNearThreshold", "(10.0 %)", 50},
		{"a byte less", diskSample{[]fileSystem{{"/", 1, 10*gib - 1, 100 * gib, 0, 0}}, nil}, Degraded, "SpaceLow", "(9.9 %)", 50},
		{"at the clear threshold", diskSample{[]fileSystem{{"/", 1, 15 * gib, 100 * gib, 0, 0}}, nil}, OK, "SpaceSufficient", "(15.0 %)", 0},
		{"inodes near", diskSample{[]fileSystem{{"/", 1, 90 * gib, 100 * gib, 60, 1000}}, nil}, OK, "InodesNearThreshold", "60 of 1000 inodes", 30},
		{"no inodes counted", diskSample{[]fileSystem{withoutInodes}, nil}, OK, "SpaceSufficient", "50.0 %", 0},
		{"full", diskSample{[]fileSystem{{"/", 1, 0, gib, 0, 0}}, nil}, Degraded, "SpaceLow", "available 0 B of 1 GiB (0.0 %)", 100},
		{"no inodes left", diskSample{[]fileSystem{{"/", 1, gib, gib, 0, 9}}, nil}, Degraded, "InodesLow", "free 0 of 9", 100},
		{"without size", diskSample{[]fileSystem{{"/proc", 1, 0, 0, 0, 0}}, nil}, Unknown, "NoFileSystem", "", 0},
		{"nothing there", diskSample{}, Unknown, "NoFileSystem", "none of the paths", 0},
		{"no answer hides behind no OK", diskSample{[]fileSystem{half("/")}, []error{stuck}}, Unknown, "StatfsBlocked", "/mnt: no answer for 3s", 0},
		{"no answer hides no trouble", diskSample{[]fileSystem{nearlyFull("/")}, []error{stuck}}, Degraded, "SpaceLow", "5.2 %", 73},
		{"all troubles are named", diskSample{nil, []error{broken, stuck}}, Unknown, "StatfsFailed", "/srv: input/output error; looking at the file system of /mnt", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := someDisk.judge(test.s)
			check(t, o, test.level, test.reason, test.message)
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
		thresholds := DiskThresholds{1 + 30*random.Float64(), 1 + 30*random.Float64(), 1 + random.Float64()}
		size := gib + random.Uint64N(1<<44)
		monotone(t, func(available uint64) Observation {
			return thresholds.judge(diskSample{[]fileSystem{half("/"), {"/a", 2, available, size, 1, 1}}, nil})
		}, size)
		monotone(t, func(free uint64) Observation {
			return thresholds.judge(diskSample{[]fileSystem{{"/a", 2, 1, 1, free, size}}, nil})
		}, size)
	}
}

// fakeDisk is a probe whose paths answer as usage says.
func fakeDisk(paths []string, usage func(path string) (fileSystem, error)) *Disk {
	d := NewDisk(Host{Root: "/"}, paths, someDisk)
	d.usage = func(_, path string) (fileSystem, error) { return usage(path) }
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
	if want := []fileSystem{half("/"), nearlyFull("/other")}; !slices.Equal(s.fileSystems, want) || s.troubles != nil {
		t.Errorf("got %+v, want %+v", s, want)
	}
}

func TestDiskTroubleIsUnknown(t *testing.T) {
	t.Parallel()
	for _, trouble := range []error{syscall.EIO, syscall.EACCES, syscall.ESTALE, syscall.ENOTCONN, errors.New("odd")} {
		d := fakeDisk([]string{"/", "/mnt"}, func(path string) (fileSystem, error) {
			if path == "/mnt" {
				return fileSystem{}, trouble
			}
			return half(path), nil
		})
		check(t, observe(t, d), Unknown, "StatfsFailed", "/mnt: "+trouble.Error())
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
		look := func() Observation {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			o := d.Observe(ctx)
			if took := time.Since(start); took > time.Second {
				t.Fatalf("took %v with a deadline of 1 s", took)
			}
			return o
		}
		check(t, look(), Unknown, "StatfsBlocked", "/mnt: no answer for 1s")
		synctest.Wait()
		before := runtime.NumGoroutine()
		for range 100 {
			check(t, look(), Unknown, "StatfsBlocked", "/mnt: no answer for")
		}
		check(t, look(), Unknown, "StatfsBlocked", "/mnt: no answer for 1m42s")
		synctest.Wait()
		// Other tests may end meanwhile; a goroutine for each look would show.
		if after := runtime.NumGoroutine(); calls.Load() != 1 || after > before+50 {
			t.Errorf("%d calls, %d goroutines before and %d after", calls.Load(), before, after)
		}
		hung = false
		close(release)
		synctest.Wait()
		check(t, look(), Degraded, "SpaceLow", "on /mnt")
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
		check(t, d.Observe(ctx), Degraded, "SpaceLow", "on /,")
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
	h := Host{Root: root}
	for path, wrong := range map[string]string{
		"/": "", "/var/lib": "", "/inside": "", "/proc": "NoFileSystem", "/var/none": "NoFileSystem",
		"/absolute": "StatfsFailed", "/upward": "StatfsFailed", "/../proc": "StatfsFailed",
	} {
		o := observe(t, NewDisk(h, []string{path}, someDisk))
		if wrong == "" && o.Level == Unknown || wrong != "" && o.Reason != wrong {
			t.Errorf("%s: %+v, want reason %q", path, o, wrong)
		}
	}
	o := observe(t, NewDisk(Host{Root: filepath.Join(root, "none")}, []string{"/"}, someDisk))
	check(t, o, Unknown, "StatfsFailed", "opening the host's root")
}

// TestDiskAgreesWithStatfs compares with the system call itself.
func TestDiskAgreesWithStatfs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var want syscall.Statfs_t
	if err := syscall.Statfs(dir, &want); err != nil {
		t.Fatal(err)
	}
	got, err := fileSystemUsage("/", dir)
	if err != nil {
		t.Fatal(err)
	}
	block := float64(want.Bsize)
	available := float64(want.Bavail) * block
	size := float64(want.Blocks-want.Bfree+want.Bavail) * block
	const slack = 256 * mib // of others that write meanwhile
	if max(available, float64(got.available))-min(available, float64(got.available)) > slack ||
		max(size, float64(got.size))-min(size, float64(got.size)) > slack {
		t.Errorf("%d available of %d, want %.0f of %.0f", got.available, got.size, available, size)
	}
	if got.inodesTotal != want.Files && got.inodesTotal != 0 || got.device == 0 {
		t.Errorf("%d inodes instead of %d on device %d", got.inodesTotal, want.Files, got.device)
	}
}

func TestFromUsage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		u    disk.UsageStat
		want fileSystem
		err  string
	}{
		{"the superuser's reserve is not counted", disk.UsageStat{Total: 100, Used: 60, Free: 20, InodesTotal: 9, InodesFree: 4},
			fileSystem{available: 20, size: 80, inodesFree: 4, inodesTotal: 9}, ""},
		{"btrfs", disk.UsageStat{Total: 100, Used: 60, Free: 40}, fileSystem{available: 40, size: 100}, ""},
		{"ceph", disk.UsageStat{Total: 100, Used: 60, Free: 40, InodesTotal: 7, InodesFree: 1<<64 - 1}, fileSystem{available: 40, size: 100}, ""},
		{"used wrapped", disk.UsageStat{Total: 100, Used: 1<<64 - 5, Free: 20}, fileSystem{}, "impossible"},
		{"free beyond the size", disk.UsageStat{Total: 100, Used: 60, Free: 101}, fileSystem{}, "impossible"},
		{"proc", disk.UsageStat{}, fileSystem{}, ""},
	} {
		got, err := fromUsage(&test.u)
		if got != test.want || (err == nil) != (test.err == "") || !strings.Contains(fmt.Sprint(err), test.err) {
			t.Errorf("%s: %+v, %v", test.name, got, err)
		}
	}
}

func BenchmarkDiskObserve(b *testing.B) {
	d := NewDisk(Host{Root: "/"}, []string{"/", "/var/lib", "/usr"}, someDisk)
	b.ReportAllocs()
	for b.Loop() {
		d.Observe(b.Context())
	}
}
