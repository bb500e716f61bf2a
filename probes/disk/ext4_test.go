package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// ext4Host is a host with ext4 on the device 8:1, which is sda1: trees of sysfs and
// procfs, as far as they tell of errors.
func ext4Host(t testing.TB, count, options string) probes.Host {
	t.Helper()
	h := probes.Host{Root: "/", Proc: t.TempDir(), Sys: t.TempDir()}
	write := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(h.Sys, "fs", "ext4", "sda1", "errors_count"), count)
	write(filepath.Join(h.Proc, "fs", "ext4", "sda1", "options"), options)
	link := filepath.Join(h.Sys, "dev", "block", "8:1")
	if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../devices/pci0000:00/0000:00:07.0/ata1/host0/target0:0:0/0:0:0:0/block/sda/sda1", link); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestErrorsAreCounted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{"0\n": 0, "17\n": 17, "4294967295\n": 4294967295} {
		got := readErrors(ext4Host(t, text, ""), unix.Mkdev(8, 1))
		if got.superblock == 0 || got.device != unix.Mkdev(8, 1) || got.errors != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
	for _, odd := range []string{"", "1", "-1\n", "x\n", "\n", "1 2\n", "18446744073709551616\n", probetest.Binary} {
		if got := readErrors(ext4Host(t, odd, ""), unix.Mkdev(8, 1)); got != (errorCount{}) {
			t.Errorf("%q: %+v", odd, got)
		}
	}
	h := ext4Host(t, "1\n", "")
	for _, device := range []uint64{0, unix.Mkdev(8, 2), unix.Mkdev(0, 33)} {
		if got := readErrors(h, device); got != (errorCount{}) {
			t.Errorf("device %d: %+v", device, got)
		}
	}
	if got := readErrors(probes.Host{}, unix.Mkdev(8, 1)); got != (errorCount{}) {
		t.Errorf("without sysfs: %+v", got)
	}
}

func TestStopsAtErrors(t *testing.T) {
	t.Parallel()
	device := unix.Mkdev(8, 1)
	for options, want := range map[string]bool{
		"rw\nbsddf\nerrors=remount-ro\ncommit=5\n": true, "rw\nerrors=continue\n": false, "rw\nerrors=panic\n": false,
		"rw\nerrors=remount-ro": false, "rw\nxerrors=remount-ro\n": false, "": false,
	} {
		if got := stopsAtErrors(ext4Host(t, "0\n", options), "ext4", device); got != want {
			t.Errorf("%q: %t", options, got)
		}
	}
	h := ext4Host(t, "0\n", "errors=remount-ro\n")
	for _, other := range []struct {
		fsType string
		device uint64
	}{{"", 0}, {"xfs", device}, {"ext4", unix.Mkdev(8, 2)}} {
		if stopsAtErrors(h, other.fsType, other.device) {
			t.Errorf("%+v", other)
		}
	}
}

// TestOnlyNewErrorsCount has counts in a row, and what of them is new.
func TestOnlyNewErrorsCount(t *testing.T) {
	t.Parallel()
	var g errorGrowth
	for i, step := range []struct {
		count errorCount
		grew  bool
		more  uint64
	}{
		{errorCount{}, false, 0},
		{errorCount{1, 10, 7}, false, 0}, // from before
		{errorCount{1, 10, 7}, false, 0},
		{errorCount{1, 10, 9}, true, 2},
		{errorCount{}, false, 2}, // could not be read
		{errorCount{1, 10, 9}, false, 2},
		{errorCount{1, 10, 10}, true, 3},
		{errorCount{1, 11, 10}, false, 0}, // mounted again
		{errorCount{1, 11, 12}, true, 2},
		{errorCount{1, 11, 0}, false, 0}, // checked
		{errorCount{1, 11, 1}, true, 1},
		{errorCount{2, 11, 5}, false, 0}, // another device
		{errorCount{2, 11, 4}, false, 0},
	} {
		if grew := g.follow(step.count); grew != step.grew || g.more != step.more {
			t.Errorf("step %d: grew %t, %d more, want %t, %d", i, grew, g.more, step.grew, step.more)
		}
	}
}

// onSDA1 is a path on the ext4 of ext4Host.
func onSDA1(string, string) (pathSample, error) {
	f := half("")
	f.device = unix.Mkdev(8, 1)
	return pathSample{fileSystem: f, kind: unix.EXT4_SUPER_MAGIC, mountID: 25}, nil
}

// TestNewErrorStopsWritesOnKernelsThatDoNotShowIt has the mountinfo of Linux 6.12.
func TestNewErrorStopsWritesOnKernelsThatDoNotShowIt(t *testing.T) {
	t.Parallel()
	const line = "25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
	for _, test := range []struct {
		name, options, line string
		bad                 bool
	}{
		{"errors=remount-ro", "rw\nerrors=remount-ro\n", line, true},
		{"errors=continue", "rw\nerrors=continue\n", line, false},
		{"meant to be read-only", "ro\nerrors=remount-ro\n", strings.Replace(line, " rw\n", " ro\n", 1), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := ext4Host(t, "3\n", test.options)
			for _, process := range []string{"1", "self"} {
				if err := os.Mkdir(filepath.Join(h.Proc, process), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(h.Proc, process, "mountinfo"), []byte(test.line), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			d := New(h, []string{"/"}, someDisk)
			d.samplePath = onSDA1
			check := func(errors int, bad bool) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(h.Sys, "fs", "ext4", "sda1", "errors_count"), fmt.Appendln(nil, errors), 0o600); err != nil {
					t.Fatal(err)
				}
				if bad {
					probetest.Check(t, probetest.Observe(t, d), probes.Degraded, "FileSystemReadOnly",
						fmt.Sprintf("ext4 of / (/dev/sda1) takes no more writes after an error (errors=remount-ro, errors_count grew by %d)", errors-3))
				} else if o := probetest.Observe(t, d); o.Level != probes.OK {
					t.Errorf("%d errors: %+v", errors, o)
				}
			}
			check(3, false) // years old
			check(3, false)
			check(4, test.bad)
			check(4, test.bad)
			check(0, false) // checked and mounted again
			check(0, false)
		})
	}
}

// TestNewErrorHastensMountsAndWrites: an error need not show in the flags.
func TestNewErrorHastensMountsAndWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads, writes, errors := 0, 0, uint64(3)
		d := New(nowhere, []string{"/"}, someDisk, someWrite)
		d.samplePath = onSDA1
		d.readErrors = func(device uint64) errorCount { return errorCount{device, 10, errors} }
		d.mounts.read = func([]wantedMount) []pathMounts { reads++; return make([]pathMounts, 1) }
		d.writers[0].write = func() writeAnswer { writes++; return writeAnswer{} }
		for _, want := range []struct {
			errors        uint64
			reads, writes int
		}{{3, 1, 1}, {3, 1, 1}, {4, 2, 1}, {4, 2, 2}, {4, 2, 2}} {
			errors = want.errors
			observeBriefly(t, d)
			if reads != want.reads || writes != want.writes {
				t.Errorf("%d reads and %d writes, want %+v", reads, writes, want)
			}
			time.Sleep(time.Second)
		}
	})
}

// TestErrorBeneathAnOverlayCounts: the root of a container says nothing of the file
// system that it lies on.
func TestErrorBeneathAnOverlayCounts(t *testing.T) {
	t.Parallel()
	errors := uint64(3)
	d := New(nowhere, []string{"/"}, someDisk)
	d.samplePath = func(string, string) (pathSample, error) { return pathSample{fileSystem: half(""), mountID: 900}, nil }
	d.readErrors = func(device uint64) errorCount { return errorCount{device, 10, errors} }
	d.mounts.read = func([]wantedMount) []pathMounts {
		return []pathMounts{{
			own:     mount{point: "/", fsType: "overlay", source: "overlay", upper: "/var/lib/containerd/17/fs"},
			beneath: mount{id: 31, device: unix.Mkdev(8, 1), point: "/var/lib/containerd", fsType: "ext4", source: "/dev/sda1", stopsAtErrors: true},
		}}
	}
	for range 2 {
		probetest.Check(t, probetest.Observe(t, d), probes.OK, "SpaceSufficient", "")
	}
	errors = 4
	probetest.Check(t, probetest.Observe(t, d), probes.Degraded, "FileSystemReadOnly", "ext4 of /var/lib/containerd (/dev/sda1) takes no more writes")
}

func FuzzErrors(f *testing.F) {
	h := ext4Host(f, "0\n", "")
	count := filepath.Join(h.Sys, "fs", "ext4", "sda1", "errors_count")
	options := filepath.Join(h.Proc, "fs", "ext4", "sda1", "options")
	for _, text := range []string{"0\n", "17\n", "", "-1\n", "rw\nerrors=remount-ro\n", probetest.Binary} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, path := range []string{count, options} {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got := readErrors(h, unix.Mkdev(8, 1))
		digits, whole := strings.CutSuffix(string(text), "\n")
		if known := got.superblock != 0; known != (whole && isNumber(digits)) {
			t.Errorf("%q: %+v", text, got)
		}
		stops := stopsAtErrors(h, "ext4", unix.Mkdev(8, 1))
		if stops && !strings.Contains(string(text), "errors=remount-ro\n") {
			t.Errorf("%q stops at errors", text)
		}
	})
}

// isNumber is what the kernel prints for %u and what fits it.
func isNumber(text string) bool {
	digits := strings.TrimLeft(text, "0")
	return text != "" && strings.Trim(text, "0123456789") == "" && (len(digits) < 20 || len(digits) == 20 && digits <= "18446744073709551615")
}
