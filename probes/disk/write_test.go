package disk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// someWrite is what the write tests use.
var someWrite = Write{Directory: "/scratch", Interval: 30 * time.Second, Slow: time.Second}

func TestDiskJudgesWrites(t *testing.T) {
	t.Parallel()
	wrote := func(took time.Duration, err error, failures int) writeSample {
		return writeSample{Write: someWrite, writeAnswer: writeAnswer{took: took, err: err}, failures: failures}
	}
	meant := wrote(0, syscall.EROFS, 0)
	meant.meant = true
	slow := func(took, since time.Duration) writeSample {
		w := wrote(took, nil, 0)
		w.slowFor = since
		return w
	}
	pending := func(silence time.Duration) writeSample { return writeSample{Write: someWrite, silence: silence} }
	patient := someDisk
	patient.BlockedAfter = 30 * time.Second
	for _, test := range []struct {
		name            string
		w               writeSample
		level           probes.Level
		severity        int
		certain         bool
		reason, message string
	}{
		{"prompt", wrote(time.Millisecond, nil, 0), probes.OK, 0, false, "SpaceSufficient", ""},
		{"near", wrote(900*time.Millisecond, nil, 0), probes.OK, 35, false, "WriteNearThreshold", "writing 4 KiB to /scratch: took 900 ms, threshold 1 s"},
		{"slow for a minute", slow(3200*time.Millisecond, time.Minute), probes.Degraded, 84, false, "WriteSlow", "writing 4 KiB to /scratch: took 3.2 s, threshold 1 s; none was faster for 60 s, threshold 60 s"},
		{"at the threshold", slow(time.Second, time.Hour), probes.Degraded, 50, false, "WriteSlow", "took 1 s, threshold 1 s"},
		{"slow for less", slow(9*time.Second, 59*time.Second), probes.OK, 49, false, "WriteSlowBriefly", "writing 4 KiB to /scratch: took 9 s, threshold 1 s; slow for 59 s"},
		{"no answer", pending(30 * time.Second), probes.Degraded, 50, false, "WriteBlocked", "writing 4 KiB to /scratch: no answer for 30 s, threshold 30 s"},
		{"no answer yet", pending(29 * time.Second), probes.Unknown, 0, false, "WritePending", "writing 4 KiB to /scratch: no answer for 29 s"},
		{"EROFS", wrote(0, syscall.EROFS, 1), probes.Degraded, 75, false, "FileSystemReadOnly", "writing 4 KiB to /scratch: read-only file system"},
		{"EROFS twice", wrote(0, syscall.EROFS, 2), probes.Degraded, 100, true, "FileSystemReadOnly", "read-only file system, 2 times in a row"},
		{"EIO", wrote(0, syscall.EIO, 1), probes.Degraded, 75, false, "WriteFailed", "writing 4 KiB to /scratch: input/output error"},
		{"EIO twice", wrote(0, &os.PathError{Op: "write", Path: "x", Err: syscall.EIO}, 2), probes.Degraded, 100, true, "WriteFailed", "/scratch: input/output error, 2 times"},
		{"full", wrote(0, syscall.ENOSPC, 0), probes.Degraded, 100, false, "WriteNoSpace", "writing 4 KiB to /scratch: no space left on device"},
		{"over quota", wrote(0, syscall.EDQUOT, 0), probes.Degraded, 100, false, "WriteNoSpace", "disk quota exceeded"},
		{"no permission", wrote(0, syscall.EACCES, 0), probes.OK, 0, false, "SpaceSufficient", "; unknown: writing 4 KiB to /scratch: permission denied"},
		{"not there", wrote(0, syscall.ENOENT, 0), probes.OK, 0, false, "SpaceSufficient", "; unknown: writing 4 KiB to /scratch: no such file or directory"},
		{"no files left", wrote(0, syscall.EMFILE, 0), probes.OK, 0, false, "SpaceSufficient", "; unknown: writing 4 KiB to /scratch: too many open files"},
		{"meant", meant, probes.OK, 0, false, "SpaceSufficient", "; unknown: writing 4 KiB to /scratch: read-only file system (its mount is, its file system is not)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := answering(half("/"))
			s.writes = []writeSample{test.w}
			o := patient.judge(s).join()
			near := strings.HasSuffix(test.reason, "NearThreshold") || test.reason == "WriteSlowBriefly"
			if o.Severity != test.severity || o.Certain != test.certain || o.Hysteresis != near {
				t.Errorf("%+v", o)
			}
			o.Certain = false
			probetest.Check(t, o, test.level, test.reason, test.message)
		})
	}
	anyTime := wrote(time.Minute, nil, 0)
	anyTime.Slow = 0
	o := someDisk.judge(sample{writes: []writeSample{anyTime}}).join()
	probetest.Check(t, o, probes.OK, "WritePrompt", "writing 4 KiB to /scratch: took 60 s")
	s := answering(half("/"))
	s.writes = []writeSample{pending(time.Hour)}
	o = someDisk.judge(s).join() // BlockedAfter 0: it stays Unknown, and an answer is not waited for
	probetest.Check(t, o, probes.OK, "SpaceSufficient", "; unknown: writing 4 KiB to /scratch: no answer for 60 min")
}

// fakeWriter is a probe of no path that writes as write says.
func fakeWriter(write func() writeAnswer) *Probe {
	d := New(nowhere, nil, someDisk, someWrite)
	d.writers[0].write = write
	return d
}

// observeBriefly takes a sample with a deadline of 5 s.
func observeBriefly(t *testing.T, d *Probe) probes.Observation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	start := time.Now()
	o := d.Observe(ctx)
	if took := time.Since(start); took > 5*time.Second {
		t.Fatalf("took %v with a deadline of 5 s", took)
	}
	return o
}

// TestWriteProbeHasItsOwnInterval: a good result counts for the interval, a bad
// one not even for the next sample.
func TestWriteProbeHasItsOwnInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		writes, answer := 0, writeAnswer{took: time.Millisecond}
		d := fakeWriter(func() writeAnswer {
			writes++
			return answer
		})
		for range 60 { // ten minutes
			probetest.Check(t, observeBriefly(t, d), probes.OK, "WritePrompt", "took 1 ms")
			time.Sleep(10 * time.Second)
		}
		if writes != 20 {
			t.Errorf("%d writes in 60 samples and 10 min, want one every 30 s", writes)
		}
		for _, bad := range []writeAnswer{{took: 2 * time.Second}, {err: syscall.ENOSPC}, {err: syscall.EIO}, {err: syscall.EACCES}} {
			writes, answer = 0, bad
			time.Sleep(30 * time.Second)
			for range 10 {
				observeBriefly(t, d)
				time.Sleep(250 * time.Millisecond)
			}
			if writes != 10 {
				t.Errorf("%+v: %d writes in 10 samples", bad, writes)
			}
		}
	})
}

// TestWriteProbeCountsFailures: two in a row are proof, whatever each says; one
// good write begins anew.
func TestWriteProbeCountsFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var answer writeAnswer
		d := fakeWriter(func() writeAnswer { return answer })
		observe := func(a writeAnswer) probes.Observation {
			answer = a
			time.Sleep(time.Minute)
			return observeBriefly(t, d)
		}
		mountOnly := writeAnswer{err: syscall.EROFS, meant: true}
		probetest.Check(t, observe(mountOnly), probes.Unknown, "WriteDirectoryUnusable", "")
		probetest.Check(t, observe(writeAnswer{err: syscall.EROFS}), probes.Degraded, "FileSystemReadOnly", "read-only file system")
		probetest.Check(t, observe(writeAnswer{}), probes.OK, "WritePrompt", "")
		probetest.Check(t, observe(mountOnly), probes.Degraded, "FileSystemReadOnly", "") // it was written to before
		checkCertain(t, observe(writeAnswer{err: syscall.EIO}), "WriteFailed", "2 times in a row")
		checkCertain(t, observe(writeAnswer{err: syscall.EROFS}), "FileSystemReadOnly", "3 times in a row")
		probetest.Check(t, observe(writeAnswer{err: syscall.ENOSPC}), probes.Degraded, "WriteNoSpace", "")
		probetest.Check(t, observe(writeAnswer{err: syscall.EIO}), probes.Degraded, "WriteFailed", "")
	})
}

// TestWriteProbeBeginsAnewOnAnotherFileSystem: what the one before let be written
// tells nothing of this one, and neither do its failures.
func TestWriteProbeBeginsAnewOnAnotherFileSystem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var answer writeAnswer
		d := fakeWriter(func() writeAnswer { return answer })
		observe := func(place uint64, err error, meant bool) probes.Observation {
			answer = writeAnswer{err: err, meant: meant, place: identity{device: place}}
			time.Sleep(time.Minute)
			return observeBriefly(t, d)
		}
		probetest.Check(t, observe(1, nil, false), probes.OK, "WritePrompt", "")
		probetest.Check(t, observe(1, syscall.EROFS, true), probes.Degraded, "FileSystemReadOnly", "")
		probetest.Check(t, observe(2, syscall.EROFS, true), probes.Unknown, "WriteDirectoryUnusable", "") // it was never written to
		probetest.Check(t, observe(2, syscall.EIO, false), probes.Degraded, "WriteFailed", "")
		probetest.Check(t, observe(3, syscall.EIO, false), probes.Degraded, "WriteFailed", "")
		checkCertain(t, observe(0, syscall.EIO, false), "WriteFailed", "2 times in a row") // it could not even be opened
		checkCertain(t, observe(3, syscall.EIO, false), "WriteFailed", "3 times in a row")
	})
}

// TestWriteProbeThatHangs follows a write through an hour of hanging: one call,
// one goroutine, every sample in time.
func TestWriteProbeThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls, hung, release := 0, true, make(chan struct{})
		patient := someDisk
		patient.BlockedAfter = 30 * time.Second
		d := New(nowhere, []string{"/"}, patient, someWrite)
		d.samplePath = func(string, string) (pathSample, error) { return pathSample{fileSystem: half("")}, nil }
		d.writers[0].write = func() writeAnswer {
			calls++
			if hung {
				<-release
				return writeAnswer{took: time.Hour, err: syscall.EIO}
			}
			return writeAnswer{err: syscall.EIO}
		}
		probetest.Check(t, observeBriefly(t, d), probes.Unknown, "WritePending", "writing 4 KiB to /scratch: no answer for 5 s")
		time.Sleep(20 * time.Second)
		probetest.Check(t, observeBriefly(t, d), probes.Unknown, "WritePending", "writing 4 KiB to /scratch: no answer for 25 s")
		synctest.Wait()
		before := runtime.NumGoroutine()
		for range 3600 / 10 {
			time.Sleep(10 * time.Second)
			probetest.Check(t, observeBriefly(t, d), probes.Degraded, "WriteBlocked", "no answer for")
		}
		probetest.Check(t, observeBriefly(t, d), probes.Degraded, "WriteBlocked", "no answer for 61 min")
		synctest.Wait()
		// Other tests may end meanwhile; a goroutine for each sample would show.
		if after := runtime.NumGoroutine(); calls != 1 || after > before+50 {
			t.Errorf("%d calls, %d goroutines before and %d after", calls, before, after)
		}
		hung = false
		close(release)
		synctest.Wait()
		// The late answer was a failure, and so is the next.
		probetest.Check(t, observeBriefly(t, d), probes.Degraded, "WriteFailed", "input/output error")
		checkCertain(t, observeBriefly(t, d), "WriteFailed", "input/output error, 2 times in a row")
	})
}

// testFileIn is the file that a probe of this directory would write.
func testFileIn(directory string) *testFile {
	return newTestFile(probes.Host{Root: "/", Proc: "/proc"}, directory)
}

func names(t *testing.T, directory string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

func TestWriteLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 3 {
		if answer := testFileIn(dir).write(); answer.err != nil || answer.took <= 0 {
			t.Errorf("%+v", answer)
		}
	}
	if left := names(t, dir); len(left) != 0 {
		t.Errorf("%q is left", left)
	}
}

// TestWriteCleansUpAfterAKilledProcess: what it left goes, and nothing else.
func TestWriteCleansUpAfterAKilledProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	others := []string{".taintlet-write-", ".taintlet-write-another", testFileIn(dir).name + ".bak", "data"}
	for _, name := range append(others, testFileIn(dir).name) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if answer := testFileIn(dir).write(); answer.err != nil {
		t.Fatal(answer.err)
	}
	if left := names(t, dir); len(left) != len(others) {
		t.Errorf("%q is left", left)
	}
}

// TestWritesOfSeveralProcesses of one host do not disturb one another, except that one may find no
// time at which the name is free.
func TestWritesOfSeveralProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				if answer := testFileIn(dir).write(); answer.err != nil && !errors.Is(answer.err, os.ErrExist) {
					t.Errorf("%+v", answer)
				}
			}
		})
	}
	all.Wait()
	if left := names(t, dir); len(left) != 0 {
		t.Errorf("%q is left", left)
	}
}

// TestWriteFollowsNoLink: whoever may write to the directory puts a link where
// the file is to be.
func TestWriteFollowsNoLink(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	f := testFileIn(dir)
	for range 2 {
		if err := os.Symlink(outside, filepath.Join(dir, f.name)); err != nil {
			t.Fatal(err)
		}
		if answer := f.write(); answer.err != nil {
			t.Errorf("%+v", answer)
		}
	}
	if _, err := os.Lstat(outside); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was written through the link: %v", err)
	}
}
