package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// The tests of this file take real memory of this host: a few hundred MiB to
// 4 GiB, for seconds. The thresholds lie where that shows.

// thisHost is the host that the tests run on.
func thisHost() probes.Host { return probes.Host{Root: "/", Proc: "/proc", Sys: "/sys"} }

// A tmpfs that fills up takes memory as programs do: the host is Degraded when
// the threshold is passed, and OK when the files are gone.
func TestRealTmpfsFillsTheHost(t *testing.T) {
	before, err := readHost(t, thisHost(), sample{})
	if err != nil {
		t.Skipf("this host cannot be read: %v", err)
	}
	// As much as can be spared: other programs take and give back memory meanwhile, and half of
	// the file decides.
	fill := min(before.available/4, 4*gib)
	if fill < gib {
		t.Skipf("too little memory to take 1 GiB: %d MiB available", before.available/mib)
	}
	mounted := mountTmpfs(t, int(fill))
	p := New(thisHost(), Thresholds{AvailablePercent: 100 * float64(before.available-fill/2) / before.whole(), ClearFactor: 1})
	probetest.Check(t, probetest.Observe(t, p), probes.OK, "MemorySufficient", "")

	file := filepath.Join(mounted, "file")
	allocate(t, file, int64(fill))
	waitObserved(t, p, func(o probes.Observation) bool { return o.Level == probes.Degraded && o.Reason == "MemoryLow" })
	if full, err := readHost(t, thisHost(), sample{}); err != nil || full.whole() < before.whole()-float64(fill)/2 {
		t.Errorf("the base of the percentages has shrunk from %.0f MiB to %.0f MiB, %v", before.whole()/mib, full.whole()/mib, err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	waitObserved(t, p, func(o probes.Observation) bool { return o.Level == probes.OK })
}

// mountTmpfs mounts a tmpfs that is gone when the test ends, or its process.
func mountTmpfs(t *testing.T, size int) (mounted string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	// A detached mount has no path that could outlive the process.
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		t.Skipf("mounting is not allowed here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fs) //nolint:errcheck // the mount is another file
	if err := unix.FsconfigSetString(fs, "size", fmt.Sprint(size)); err != nil {
		t.Fatal(err)
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		t.Fatal(err)
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(mount) }) //nolint:errcheck // nothing is to be kept
	return fmt.Sprintf("/proc/self/fd/%d", mount)
}

// allocate makes a file of that size. A tmpfs gives it all its pages at once.
func allocate(t *testing.T, path string, size int64) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // nothing was written through it
	if err := syscall.Fallocate(int(file.Fd()), 0, 0, size); err != nil {
		t.Fatal(err)
	}
}

// waitObserved samples until it sees what is asked for. Other programs of this
// host take and give memory meanwhile.
func waitObserved(t *testing.T, p probes.Probe, wanted func(probes.Observation) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		o := probetest.Observe(t, p)
		if wanted(o) {
			t.Log(probetest.Text(o))
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("still %s", probetest.Text(o))
		case <-ticker.C:
		}
	}
}

// A control group that reads more files than its limit has room for stalls, and
// PSI of the host counts that. It is no lack of memory of the host.
func TestRealControlGroupAtItsLimit(t *testing.T) {
	const limit = 64 * mib
	if _, err := os.Stat("/proc/pressure/memory"); err != nil {
		t.Skipf("this host measures no pressure: %v", err)
	}
	group := memoryGroup(t, limit)
	readWithin(t, group, t.TempDir())

	p := New(thisHost(), Thresholds{StalledPercent: 2, StalledAvailablePercent: 100, ClearFactor: 1})
	stalls := 0
	ticker := time.NewTicker(1100 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(20 * time.Second); stalls < 3 && time.Now().Before(deadline); <-ticker.C {
		o := p.Observe(t.Context())
		probetest.WellFormed(t, o)
		switch stalled := p.before[len(p.before)-1].stalls; {
		case o.Level == probes.OK && strings.Contains(o.Message, "by the host's own reclaim"):
			t.Log(o.Message)
			stalls++
		case o.Level != probes.OK:
			t.Logf("the host reclaims, too: %s", probetest.Text(o))
		default:
			t.Logf("no stall yet, %v in all", stalled.Some)
		}
	}
	if stalls < 3 {
		t.Errorf("%d stalls of the group did not count", stalls)
	}
}

// memoryGroup makes a control group that may have that much memory.
func memoryGroup(t *testing.T, limit int) (group string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("control groups need root")
	}
	// Where the controllers are mounted below it, /sys/fs/cgroup is a tmpfs without
	// the file.
	for _, file := range []string{"memory/*/memory.limit_in_bytes", "*/memory.max"} {
		group, limits := filepath.Split(strings.Replace(filepath.Join("/sys/fs/cgroup", file), "*", fmt.Sprintf("taintlet-test-%d", os.Getpid()), 1))
		if err := os.Mkdir(group, 0o700); err != nil {
			continue
		}
		t.Cleanup(func() { remove(t, group) })
		if file, err := os.OpenFile(filepath.Join(group, limits), os.O_WRONLY, 0); err == nil {
			_, err = fmt.Fprint(file, limit)
			if file.Close() == nil && err == nil {
				return group
			}
		}
	}
	t.Skip("no control group with a limit of memory can be made here")
	return ""
}

// remove removes a control group as soon as the kernel has taken its programs,
// which are killed, out of it.
func remove(t *testing.T, group string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if err := os.Remove(group); err == nil || time.Now().After(deadline) {
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
}

// readWithin reads two files of 256 MiB again and again, by programs in a control
// group, until the test ends. They write the files themselves, so that the group
// pays for the page cache.
func readWithin(t *testing.T, group, dir string) {
	t.Helper()
	const script = `read go; dd if=/dev/zero of="$1" bs=1M count=256; sync "$1"; while :; do dd if="$1" of=/dev/null bs=4k; done`
	for _, name := range []string{"one", "two"} {
		runWithin(t, group, script, filepath.Join(dir, name))
	}
}

// runWithin runs a shell's script in a control group until the test ends. The script
// begins when it can read a line.
func runWithin(t *testing.T, group, script string, args ...string) {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "sh", append([]string{"-c", script, "sh"}, args...)...)
	shell.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	begin, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) //nolint:errcheck // the shell and its children
		shell.Wait()                                      //nolint:errcheck // killed
	})
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, shell.Process.Pid), 0o600); err != nil {
		t.Skipf("a program cannot be moved into a control group here: %v", err)
	}
	if _, err := begin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
}
