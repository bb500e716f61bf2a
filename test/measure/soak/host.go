package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/taintlet/taintlet/test/bed"
	"github.com/taintlet/taintlet/test/fixtures"
)

// rootSize is the size of the host's root file system, in bytes.
const rootSize = 32 << 20

// bench is what of a test the packages need that make hosts and gates. What fails
// there ends the incident that it belongs to.
type bench struct {
	testing.TB
	ctx    context.Context //nolint:containedctx // that of a test
	folder string

	mu       sync.Mutex
	cleanups []func()
}

// failure is what a bench panics with.
type failure struct{ error }

func (b *bench) Helper()                  {}
func (b *bench) Context() context.Context { return b.ctx }
func (b *bench) TempDir() string          { return b.folder }
func (b *bench) Fatal(args ...any)        { panic(failure{errors.New(fmt.Sprint(args...))}) }
func (b *bench) Error(args ...any)        { b.Fatal(args...) }
func (b *bench) Fatalf(format string, args ...any) {
	panic(failure{fmt.Errorf(format, args...)})
}

func (b *bench) Cleanup(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cleanups = append(b.cleanups, f)
}

// end cleans up.
func (b *bench) end() (err error) {
	for i := len(b.cleanups) - 1; i >= 0; i-- {
		err = errors.Join(err, attempt(func() error { b.cleanups[i](); return nil }))
	}
	return err
}

// attempt calls do, and returns what fails in it on a bench as an error.
func attempt(do func() error) (err error) {
	defer func() {
		if told := recover(); told != nil {
			failed, ok := told.(failure)
			if !ok {
				panic(told)
			}
			err = failed.error
		}
	}()
	return do()
}

// newHost returns a healthy host of files that the agents' user may read. Its root
// is a small file system of its own where this program may mount one.
func newHost(b *bench) (h *fixtures.Host, hasRoot bool, err error) {
	newOne := func() *fixtures.Host { return fixtures.NewHost(b) }
	if hasRoot = os.Getuid() == 0; hasRoot {
		root, err := mountRoot(b)
		if err != nil {
			return nil, false, err
		}
		newOne = func() *fixtures.Host { return fixtures.NewHostOn(b, root) }
	}
	if err := attempt(func() error { h = newOne(); return nil }); err != nil {
		return nil, false, err
	}
	// How long tasks wait is that of this machine: the kernel wakes the probes.
	if err := os.Symlink("/proc/pressure", filepath.Join(h.Dir, "proc", "pressure")); err != nil {
		return nil, false, err
	}
	write := filepath.Join(h.Root, "scratch")
	return h, hasRoot, errors.Join(os.MkdirAll(write, 0o755), bed.GiveToAgents(write)) //nolint:gosec // as above
}

// mountRoot mounts a small file system that the agents' user may read.
func mountRoot(b *bench) (path string, err error) {
	path = filepath.Join(b.folder, "root")
	if err := os.Mkdir(path, 0o755); err != nil { //nolint:gosec // the agent is another user
		return "", err
	}
	if err := syscall.Mount("tmpfs", path, "tmpfs", 0, fmt.Sprintf("size=%d,mode=755", rootSize)); err != nil {
		return "", fmt.Errorf("mount a root file system: %w", err)
	}
	b.Cleanup(func() { _ = syscall.Unmount(path, syscall.MNT_DETACH) })
	return path, nil
}

// fill takes all but a little of the host's root file system, or gives it back.
func fill(h *fixtures.Host, full bool) error {
	path := filepath.Join(h.Root, "ballast")
	if !full {
		return os.Remove(path)
	}
	ballast, err := os.Create(path) //nolint:gosec // our own folder
	if err != nil {
		return err
	}
	defer ballast.Close() //nolint:errcheck // nothing was written through it
	return syscall.Fallocate(int(ballast.Fd()), 0, 0, rootSize*96/100)
}
