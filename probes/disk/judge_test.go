package disk

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/probetest"
)

const mib, gib = 1 << 20, 1 << 30

var someDisk = Thresholds{AvailablePercent: 10, InodesPercent: 5, ClearFactor: 1.5}

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
