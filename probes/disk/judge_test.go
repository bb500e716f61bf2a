package disk

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
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

// answering is what paths report whose file systems are these.
func answering(all ...fileSystem) (s sample) {
	for _, f := range all {
		s.paths = append(s.paths, pathState{name: f.path, answered: true, fileSystem: f})
	}
	return s
}

// and returns the sample with one more path.
func (s sample) and(r pathState) sample {
	s.paths = append(slices.Clone(s.paths), r)
	return s
}

// onMount is a sample of one path with much space, on this mount.
func onMount(m mountSample) sample {
	s := answering(half("/var/lib/kubelet"))
	s.paths[0].title = (&pathMounts{own: m.mount}).title("/var/lib/kubelet", kubeletRole)
	s.paths[0].mounts = []mountSample{m}
	return s
}

func TestDiskJudge(t *testing.T) {
	t.Parallel()
	patient := someDisk
	patient.BlockedAfter = 30 * time.Second
	stuck := pathState{name: "/mnt", silence: 3 * time.Second}
	broken := pathState{name: "/srv", trouble: probes.Because("StatfsFailed", "looking at the file system of /srv: stale file handle")}
	withoutInodes := fileSystem{"/", 4, 50 * gib, 100 * gib, 0, 0}
	since := func(f, healthy fileSystem) sample {
		return answering(half("/"), nearlyFull("/y")).and(pathState{name: "/x", answered: true, fileSystem: f, healthy: healthy, since: 41 * time.Second})
	}
	early := patient
	early.EarlyPercent = 20
	for _, test := range []struct {
		name            string
		s               sample
		level           probes.Level
		reason, message string
		severity        int
	}{
		{"early", answering(half("/"), fileSystem{"/data", 5, 19 * gib, 100 * gib, 0, 0}), probes.OK, "SpaceSufficient", "", 27},
		{"early, at ease", answering(half("/"), fileSystem{"/data", 5, 25 * gib, 100 * gib, 0, 0}), probes.OK, "SpaceSufficient", "", 12},
		{"early, and few inodes", answering(fileSystem{"/", 1, 90 * gib, 100 * gib, 60, 1000}), probes.OK, "InodesNearThreshold", "", 0},
		{"plenty", answering(half("/")), probes.OK, "SpaceSufficient",
			"available 50 GiB of 100 GiB (50.0 %) on the file system of /, threshold 10 %", 0},
		{"the worst decides", answering(half("/"), nearlyFull("/var/lib/kubelet"), fewInodes("/x")), probes.Degraded, "InodesLow",
			"free 21500 of 1000000 inodes (2.1 %) on the file system of /x, threshold 5 %", 78},
		{"space", answering(nearlyFull("/var/lib/kubelet"), half("/")), probes.Degraded, "SpaceLow",
			"available 4.1 GiB of 78.2 GiB (5.2 %) on the file system of /var/lib/kubelet, threshold 10 %", 73},
		{"space was written", since(fileSystem{"/x", 5, gib, 100 * gib, 0, 0}, fileSystem{"/x", 5, 23 * gib, 100 * gib, 0, 0}), probes.Degraded, "SpaceLow",
			"on the file system of /x, threshold 10 %; 22 GiB written in 41 s", 95},
		{"it was made smaller", since(fileSystem{"/x", 5, gib, 20 * gib, 0, 0}, fileSystem{"/x", 5, 81 * gib, 100 * gib, 0, 0}), probes.Degraded, "SpaceLow",
			"on the file system of /x, threshold 10 %", 75},
		{"inodes were written", since(fileSystem{"/x", 5, gib, gib, 10_000, 1e6}, fileSystem{"/x", 5, gib, gib, 200_000, 1e6}), probes.Degraded, "InodesLow",
			"on the file system of /x, threshold 5 %; 190000 inodes written in 41 s", 90},
		{"at the threshold", answering(fileSystem{"/", 1, 10 * gib, 100 * gib, 0, 0}), probes.OK, "SpaceNearThreshold", "(10.0 %)", 50},
		{"a byte less", answering(fileSystem{"/", 1, 10*gib - 1, 100 * gib, 0, 0}), probes.Degraded, "SpaceLow", "(9.9 %)", 50},
		{"at the clear threshold", answering(fileSystem{"/", 1, 15 * gib, 100 * gib, 0, 0}), probes.OK, "SpaceSufficient", "(15.0 %)", 0},
		{"inodes near", answering(fileSystem{"/", 1, 90 * gib, 100 * gib, 60, 1000}), probes.OK, "InodesNearThreshold", "60 of 1000 inodes", 30},
		{"no inodes counted", answering(withoutInodes), probes.OK, "SpaceSufficient", "50.0 %", 0},
		{"full", answering(fileSystem{"/", 1, 0, gib, 0, 0}), probes.Degraded, "SpaceLow", "available 0 B of 1 GiB (0.0 %)", 100},
		{"no inodes left", answering(fileSystem{"/", 1, gib, gib, 0, 9}), probes.Degraded, "InodesLow", "free 0 of 9", 100},
		{"99 GB of 1 TB", answering(fileSystem{"/", 1, 99e9, 1e12, 9e6, 6e7}), probes.OK, "SpaceSufficient", "available 92.2 GiB of 931 GiB (9.9 %) on the file system of /, threshold 51.2 GiB", 0},
		{"little of a large one", answering(fileSystem{"/", 1, 52419 * mib, 1e13, 0, 0}), probes.Degraded, "SpaceLow", "available 51.19 GiB of 9.09 TiB (0.5 %) on the file system of /, threshold 51.2 GiB", 50},
		{"few inodes of a large one", answering(fileSystem{"/", 1, 9e12, 1e13, 1677721, 6e8}), probes.Degraded, "InodesLow", "free 1677721 of 600000000 inodes (0.2 %) on the file system of /, threshold 1677722", 50},
		{"without size", answering(fileSystem{"/proc", 1, 0, 0, 0, 0}), probes.Unknown, "NoFileSystem", "", 0},
		{"nothing there", sample{}, probes.Unknown, "NoFileSystem", "none of the paths", 0},
		{"no answer hides behind no OK", answering(half("/")).and(stuck), probes.Unknown, "StatfsBlocked", "the file system of /mnt: no answer for 3 s", 0},
		{"no answer hides no trouble", answering(nearlyFull("/")).and(stuck), probes.Degraded, "SpaceLow", "5.2 %", 73},
		{"all troubles are named", sample{}.and(broken).and(stuck), probes.Unknown, "StatfsFailed", "/srv: stale file handle; the file system of /mnt: no answer for 3 s", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			thresholds := patient
			if strings.HasPrefix(test.name, "early") {
				thresholds = early
			}
			o := thresholds.judge(test.s).join()
			probetest.Check(t, o, test.level, test.reason, test.message)
			if strings.Contains(o.Message, "written") != strings.Contains(test.message, "written") {
				t.Errorf("%s", o.Message)
			}
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
			return thresholds.judge(answering(half("/"), fileSystem{"/a", 2, available, size, 1, 1})).join()
		}, size)
		probetest.Monotone(t, func(free uint64) probes.Observation {
			return thresholds.judge(answering(fileSystem{"/a", 2, 1, 1, free, size})).join()
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
		{"writable", mountSample{mount: kubeletOn("ext4", false, false), fell: false}, probes.OK, false, "SpaceSufficient", ""},
		{"not known", mountSample{}, probes.OK, false, "SpaceSufficient", ""},
		{"read-only root of an immutable system", mountSample{mount: mount{point: "/", fsType: "squashfs", readOnly: true, superReadOnly: true}, fell: false}, probes.OK, false, "SpaceSufficient", ""},
		{"squashfs mounted without ro", mountSample{mount: mount{point: "/", fsType: "squashfs", superReadOnly: true}, fell: false}, probes.OK, false, "SpaceSufficient", ""},
		{"read-only root of a container", mountSample{mount: mount{point: "/", fsType: "overlay", source: "overlay", readOnly: true}, fell: false}, probes.OK, false, "SpaceSufficient", ""},
		{"error remount", mountSample{mount: kubeletOn("ext4", false, true), fell: true}, probes.Degraded, true, "FileSystemReadOnly",
			"the kubelet's file system, /dev/sda1 ext4: turned read-only"},
		{"somebody's remount", mountSample{mount: kubeletOn("ext4", true, true), fell: true}, probes.Degraded, false, "FileSystemReadOnly",
			"the kubelet's file system, /dev/sda1 ext4: turned read-only"},
		{"somebody's remount of the mount", mountSample{mount: kubeletOn("xfs", true, false), fell: true}, probes.Degraded, false, "MountReadOnly",
			"the kubelet's file system, /dev/sda1 xfs: the mount turned read-only"},
		{"turned, and the mounts cannot be read", mountSample{mount: mount{}, fell: true}, probes.Degraded, false, "FileSystemReadOnly",
			"the kubelet's file system: turned read-only"},
		{"as after an error, from the start", mountSample{mount: kubeletOn("btrfs", false, true), fell: false}, probes.OK, false, "FileSystemReadOnlyFromStart",
			"the kubelet's file system, /dev/sda1 btrfs: read-only since the start, and its mount is not"},
		{"emergency, even from the start", mountSample{mount: emergency, fell: false}, probes.Degraded, true, "FileSystemReadOnly", "emergency_ro"},
		{"shut down", mountSample{mount: shutdown, fell: false}, probes.Degraded, true, "FileSystemShutDown", "the kubelet's file system, /dev/sda1 ext4: shut down"},
		{"odd name", mountSample{mount: odd, fell: true}, probes.Degraded, true, "FileSystemReadOnly", "/dev/a?b?[1m ext4"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := someDisk.judge(onMount(test.m)).join()
			if o.Certain != test.certain || o.Hysteresis != (test.reason == "FileSystemReadOnlyFromStart") {
				t.Errorf("%+v", o)
			}
			o.Certain = false
			probetest.Check(t, o, test.level, test.reason, test.message)
		})
	}
}

// TestDiskIsMonotoneInTime: the longer a thing takes, the worse.
func TestDiskIsMonotoneInTime(t *testing.T) {
	t.Parallel()
	thresholds := someDisk
	thresholds.BlockedAfter = 30 * time.Second
	for name, judge := range map[string]func(time.Duration) probes.Observation{
		"silence": func(d time.Duration) probes.Observation {
			return thresholds.judge(sample{}.and(pathState{name: "/", silence: d})).join()
		},
		"write": func(d time.Duration) probes.Observation {
			return thresholds.judge(sample{writes: []writeSample{{Write: someWrite, writeAnswer: writeAnswer{took: d}, slowFor: d}}}).join()
		},
		"write without an answer": func(d time.Duration) probes.Observation {
			return thresholds.judge(sample{writes: []writeSample{{Write: someWrite, silence: d}}}).join()
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
