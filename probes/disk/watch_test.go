package disk

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// mountTmpfs mounts a tmpfs on a directory of its own.
func mountTmpfs(t *testing.T) (point string) {
	t.Helper()
	point = t.TempDir()
	if err := unix.Mount("tmpfs", point, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(point, unix.MNT_DETACH) }) //nolint:errcheck // goes with the process
	return point
}

// isWoken waits for a wake-up.
func isWoken(p probes.Probe, within time.Duration) bool {
	select {
	case <-p.Wake():
		return true
	case <-time.After(within):
		return false
	}
}

// runs starts the probe's wakers, and waits until mounts are watched.
func runs(t *testing.T, d *Probe) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { d.Run(ctx); close(ended) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Error("Run does not end with the context")
		}
	})
	for deadline := time.Now().Add(time.Minute); d.mountWatch.running.Load() == nil; {
		if time.Now().After(deadline) {
			t.Fatal("nothing is watched")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestMountsWakeTheProbe mounts and remounts for real.
func TestMountsWakeTheProbe(t *testing.T) {
	t.Parallel()
	if !inOwnMounts(t) {
		return
	}
	point := mountTmpfs(t)
	d := New(hostOfOwnMounts(t), []string{point}, someDisk)
	if mode := d.WakeMode(); !strings.Contains(mode.By, "mount changes") {
		t.Errorf("woken by %s", mode)
	}
	probetest.Check(t, observe(t, d), probes.OK, "SpaceSufficient", "")
	runs(t, d)
	if isWoken(d, 100*time.Millisecond) {
		t.Error("woken by nothing")
	}
	if err := unix.Mount("", point, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if !isWoken(d, 2*time.Second) {
		t.Error("not woken by a remount")
	}
	probetest.Check(t, observe(t, d), probes.Degraded, "FileSystemReadOnly", ", tmpfs: turned read-only")
	// As where pods come and go.
	begin, wakes := time.Now(), 0
	for time.Since(begin) < mountsEvery+2*time.Second {
		busy := mountTmpfs(t)
		if err := unix.Unmount(busy, 0); err != nil {
			t.Fatal(err)
		}
		if isWoken(d, 50*time.Millisecond) {
			wakes++
		}
	}
	if wakes < 1 || wakes > 2 {
		t.Errorf("%d wake-ups in %v of mounts that come and go", wakes, mountsEvery+2*time.Second)
	}
}

// TestMountsOfProcess1AreWatchedWithoutPrivileges watches from another mount
// namespace as another user, as in a pod.
func TestMountsOfProcess1AreWatchedWithoutPrivileges(t *testing.T) {
	t.Parallel()
	const watcherEnv = "TAINTLET_TEST_WATCHED_PROC"
	if proc := os.Getenv(watcherEnv); proc != "" {
		d := New(probes.Host{Root: "/", Proc: proc}, []string{"/"}, someDisk)
		runs(t, d)
		fmt.Println("watches as", os.Geteuid(), d.WakeMode())
		if isWoken(d, 20*time.Second) {
			fmt.Println("woken")
		}
		return
	}
	if !inOwnMounts(t) {
		return
	}
	proc, err := os.MkdirTemp("", "proc") //nolint:usetesting // the other user cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(proc) //nolint:errcheck // a link
	if err := os.Chmod(proc, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(fmt.Sprintf("/proc/%d", os.Getpid()), filepath.Join(proc, "1")); err != nil {
		t.Fatal(err)
	}
	watcher := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.timeout=60s")
	watcher.Env = append(os.Environ(), watcherEnv+"="+proc, "TMPDIR=/tmp")
	watcher.Stderr = os.Stderr
	const nobody = 65534
	watcher.SysProcAttr = &syscall.SysProcAttr{
		Unshareflags: syscall.CLONE_NEWNS, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Pdeathsig: syscall.SIGKILL,
	}
	output, err := watcher.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watcher.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	if !lines.Scan() || lines.Text() != "watches as 65534 mount changes" && !strings.HasPrefix(lines.Text(), "watches as 65534 mount changes:") {
		t.Errorf("the watcher says %q", lines.Text())
	}
	mountTmpfs(t)
	if !lines.Scan() || lines.Text() != "woken" {
		t.Errorf("the watcher says %q", lines.Text())
	}
	for lines.Scan() {
		t.Log(lines.Text())
	}
	if err := watcher.Wait(); err != nil {
		t.Error(err)
	}
}

// TestMountsThatCannotBeWatched: without procfs the period is left.
func TestMountsThatCannotBeWatched(t *testing.T) {
	t.Parallel()
	for name, proc := range map[string]string{"not there": "testdata/none", "no procfs": "testdata"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := New(probes.Host{Root: "/", Proc: proc}, []string{"/"}, someDisk)
			before := d.WakeMode().String()
			if !strings.HasPrefix(before, "period: no PSI") || strings.Contains(before, "mount") {
				t.Errorf("woken by %s", before)
			}
			runs(t, d)
			if after := d.WakeMode().String(); after != before {
				t.Errorf("woken by %s, and before Run by %s", after, before)
			}
		})
	}
}

func TestModesAreJoined(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		stalls       probes.WakeMode
		mounts, want string
	}{
		{probes.WakeMode{By: "psi trigger, 2 s window"}, "mount changes", "psi trigger, 2 s window; mount changes"},
		{probes.WakeMode{By: "psi total every 500ms", Why: "opening: permission denied"}, "mount changes", "psi total every 500ms; mount changes: opening: permission denied"},
		{probes.WakeMode{Why: "no PSI"}, "mount changes", "mount changes: no PSI"},
		{probes.WakeMode{Why: "no PSI"}, "", "period: no PSI"},
		{probes.WakeMode{By: "psi trigger, 2 s window"}, "", "psi trigger, 2 s window"},
	} {
		if got := alsoBy(test.stalls, test.mounts).String(); got != test.want {
			t.Errorf("%v and %q are %q, want %q", test.stalls, test.mounts, got, test.want)
		}
	}
}

// TestMountsAreReadSeldom counts the readings of ten minutes, by how long one takes.
func TestMountsAreReadSeldom(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		took        time.Duration
		readOnly    bool // from the second sample on
		events      bool // with every sample
		least, most int
	}{
		{"a short mountinfo", 100 * time.Microsecond, false, false, 118, 121},
		{"a long one", 33 * time.Millisecond, false, false, 19, 21},
		{"what turned read-only", 100 * time.Microsecond, true, false, 118, 122},
		{"what turned read-only, among many mounts", 33 * time.Millisecond, true, false, 19, 22},
		{"mounts that come and go", 33 * time.Millisecond, false, true, 90, 121},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				reads, readOnly := 0, false
				d := New(nowhere, []string{"/"}, someDisk)
				d.samplePath = func(string, string) (pathSample, error) {
					return pathSample{fileSystem: half(""), readOnly: readOnly}, nil
				}
				d.mounts.read = func([]wantedMount) []pathMounts {
					reads++
					time.Sleep(test.took)
					return make([]pathMounts, 1)
				}
				for begin := time.Now(); time.Since(begin) < 10*time.Minute; {
					d.mountWatch.changed.Store(test.events)
					observeBriefly(t, d)
					readOnly = test.readOnly
					time.Sleep(time.Second)
				}
				if reads < test.least || reads > test.most {
					t.Errorf("%d readings in 10 min, want %d to %d", reads, test.least, test.most)
				}
			})
		})
	}
}

// TestMountsAreReadWhenSomethingChanged: at once, and once.
func TestMountsAreReadWhenSomethingChanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads, now, answer := 0, pathSample{fileSystem: half("")}, writeAnswer{}
		d := New(nowhere, []string{"/"}, someDisk, someWrite)
		d.samplePath = func(string, string) (pathSample, error) { return now, nil }
		d.writers[0].write = func() writeAnswer { return answer }
		d.mounts.read = func([]wantedMount) []pathMounts {
			reads++
			return make([]pathMounts, 1)
		}
		observeBriefly(t, d)
		for _, step := range []struct {
			name   string
			change func()
			reads  []int // with the samples that follow
		}{
			{"the start", func() {}, []int{0}},
			{"it is read-only", func() { now.readOnly = true }, []int{1, 0, 0}},
			{"it can be written again", func() { now.readOnly = false }, []int{1, 0}},
			{"another mount", func() { now.mountID = 7 }, []int{1, 0}},
			{"another file system", func() { now.device = 7 }, []int{1, 0}},
			{"a write failed", func() { answer.err = syscall.EIO; d.writesMatter = true }, []int{0, 1, 0, 0}},
			{"a mount of somebody, too soon", func() { d.mountWatch.changed.Store(true) }, []int{0, 0}},
			{"and later", func() { time.Sleep(mountsEvery); d.mounts.took = time.Second }, []int{1, 0}},
			{"a mount that does not matter", func() { time.Sleep(mountsEvery); d.mounts.took = time.Second }, []int{0, 0}},
		} {
			step.change()
			for i, want := range step.reads {
				reads = 0
				observeBriefly(t, d)
				if reads != want {
					t.Errorf("%s, sample %d: %d readings, want %d", step.name, i, reads, want)
				}
			}
		}
	})
}
