package disk

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// writer writes to one directory and remembers how that went.
type writer struct {
	Write
	call hostfile.SoleCall[writeAnswer]
	// write writes once. It may hang.
	write func() writeAnswer

	last      writeAnswer
	wrote     bool      // a write has gone well since the start
	at        time.Time // when last came; zero: never, or a write has begun since
	slowSince time.Time // start of the first slow write in a row; zero: the last was not slow
	failures  int       // writes in a row that the file system failed
	place     identity  // the file system that was written to; zero: none yet
	health    health
}

// start begins a write if one is due and no earlier one is out. A write that has
// come back since the last sample is the result of this one. matters says that the
// last result may not hold any more.
func (w *writer) start(matters bool) {
	if late, ok := w.call.Poll(); ok {
		w.take(late)
		if !matters {
			return
		}
	}
	if !matters && w.isFresh() {
		return
	}
	w.at = time.Time{}
	w.call.Start(w.write)
}

// isFresh says that the last write went well, less than the interval ago.
func (w *writer) isFresh() bool {
	return !w.at.IsZero() && time.Since(w.at) < w.Interval && w.last.err == nil && !w.isSlow(w.last)
}

// isSlow says that a write went well and took too long.
func (w *writer) isSlow(a writeAnswer) bool { return a.err == nil && w.Slow > 0 && a.took >= w.Slow }

// collect waits for the write that was begun. Where none was, it returns the last
// result.
func (w *writer) collect(ctx context.Context) (s writeSample) {
	s = writeSample{Write: w.Write}
	if w.at.IsZero() {
		answer, ok := w.call.WaitOnce(ctx)
		if !ok {
			s.silence, s.unhealthy = max(w.call.Silence(), 1), w.health.unhealthy
			return s
		}
		w.take(answer)
	}
	s.writeAnswer, s.failures, s.unhealthy = w.last, w.failures, w.health.unhealthy
	if !w.slowSince.IsZero() {
		s.slowFor = w.at.Sub(w.slowSince)
	}
	return s
}

// take takes the answer of a write that has come back. On another file system the history restarts.
func (w *writer) take(answer writeAnswer) {
	if answer.place != (identity{}) {
		if w.place != (identity{}) && w.place != answer.place {
			w.wrote, w.failures, w.slowSince, w.health = false, 0, time.Time{}, health{}
		}
		w.place = answer.place
	}
	w.wrote = w.wrote || answer.err == nil
	if isBroken(answer.err) || errors.Is(answer.err, unix.EROFS) && (w.wrote || !answer.meant) {
		w.failures++
	} else {
		w.failures = 0
	}
	w.last, w.at = answer, time.Now()
	switch {
	case !w.isSlow(answer):
		w.slowSince = time.Time{}
	case w.slowSince.IsZero():
		w.slowSince = w.at.Add(-answer.took)
	}
}

// testFile is the file that is written.
type testFile struct {
	host      probes.Host
	directory string
	// name is the same in all processes of a host: the next write removes what a killed process
	// left, and at most one file is left where nothing can be removed. Hosts that share a directory
	// have a file each.
	name string
}

func newTestFile(h probes.Host, directory string) *testFile {
	host, _ := os.Hostname() // none: all such hosts have one file
	return &testFile{host: h, directory: directory, name: ".taintlet-write-" + filepath.Base(host)}
}

// write creates the file, writes, syncs and removes it.
func (f *testFile) write() writeAnswer {
	begin := time.Now()
	directory, err := openDirectory(f.host.Root, f.directory)
	if err != nil {
		return writeAnswer{err: err}
	}
	defer directory.Close() //nolint:errcheck // nothing was written through it
	opened, err := directory.Open(".")
	if err != nil {
		return writeAnswer{err: err}
	}
	defer opened.Close() //nolint:errcheck // nothing was written through it
	err = f.writeIn(directory)
	answer := writeAnswer{took: time.Since(begin), err: err}
	if at, err := sampleFile(int(opened.Fd())); err == nil {
		answer.place = at.identity()
		answer.meant = errors.Is(answer.err, unix.EROFS) && f.isMeantReadOnly(at)
	}
	return answer
}

// isMeantReadOnly says that the directory's mount is read-only and its file system
// is not. An error makes the file system read-only, never the mount.
func (f *testFile) isMeantReadOnly(at pathSample) bool {
	own := mountsOf(f.host, []wantedMount{{path: f.directory, mountID: at.mountID, device: at.device}})[0].own
	return own.readOnly && !own.superReadOnly && !own.failed()
}

// writeIn writes the file.
func (f *testFile) writeIn(directory *os.Root) error {
	const how = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	file, err := directory.OpenFile(f.name, how, 0o600)
	if errors.Is(err, fs.ErrExist) {
		// A write left it, or is being done by another process, which does not need the name any more.
		if err := directory.Remove(f.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		file, err = directory.OpenFile(f.name, how, 0o600)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(bytes.Repeat([]byte("taintlet"), 4096/len("taintlet")))
	if err == nil {
		_, err = hostfile.Uninterrupted(func() (int, error) { return 0, unix.Fdatasync(int(file.Fd())) })
	}
	closeErr := file.Close()
	removeErr := directory.Remove(f.name)
	if errors.Is(removeErr, fs.ErrNotExist) {
		removeErr = nil // another process removed it
	}
	return cmp.Or(err, closeErr, removeErr)
}
