package disk

import (
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
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

// TestMountsAreReadSeldom counts the readings of ten minutes, by how long one takes.
func TestMountsAreReadSeldom(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		took        time.Duration
		readOnly    bool // from the second sample on
		least, most int
	}{
		{"a short mountinfo", 100 * time.Microsecond, false, 118, 121},
		{"a long one", 33 * time.Millisecond, false, 19, 21},
		{"what turned read-only", 100 * time.Microsecond, true, 118, 122},
		{"what turned read-only, among many mounts", 33 * time.Millisecond, true, 19, 22},
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
