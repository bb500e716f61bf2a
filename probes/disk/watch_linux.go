package disk

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taintlet/taintlet/probes/hostfile"
)

// mountWatch wakes the probe when a mount comes, goes or is remounted, in our own
// mount namespace or in that of process 1. The kernel tells whoever polls mountinfo
// (mounts_poll in fs/proc_namespace.c), without privileges. It tells nothing of a
// file system that an error made read-only.
type mountWatch struct {
	proc string
	// changed says that there was an event since it was last set to false.
	changed atomic.Bool
	running atomic.Pointer[string] // what mode returns; nil: run has not been called
}

// run watches until the context ends. It returns early where the kernel tells
// nothing.
func (w *mountWatch) run(ctx context.Context, wake func()) {
	files := w.open()
	defer closeAll(files)
	mode := modeOf(files)
	w.running.Store(&mode)
	if len(files) == 0 {
		return
	}
	for {
		if err := hostfile.AwaitEvent(ctx, files...); err != nil {
			mode := modeOf(nil)
			w.running.Store(&mode)
			return
		}
		w.changed.Store(true)
		wake()
		// Where pods come and go, mounts change all the time. The kernel keeps the
		// changes during this pause for the next poll.
		select {
		case <-ctx.Done():
			return
		case <-time.After(mountsEvery):
		}
	}
}

// open opens the files to poll. One is enough: without the host's process namespace,
// process 1 may be hidden. The poll of a file that is not the kernel's waits for ever.
func (w *mountWatch) open() (files []int) {
	for _, process := range []string{"1", "self"} {
		file, err := unix.Open(filepath.Join(w.proc, process, "mountinfo"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		switch {
		case err != nil:
		case hostfile.IsOnProcfs(file):
			files = append(files, file)
		default:
			closeAll([]int{file})
		}
	}
	return files
}

func closeAll(files []int) {
	for _, file := range files {
		unix.Close(file) //nolint:errcheck // nothing was written
	}
}

// mode says what is watched; empty: nothing. Before run is called, it finds out what
// run will do.
func (w *mountWatch) mode() string {
	if running := w.running.Load(); running != nil {
		return *running
	}
	files := w.open()
	defer closeAll(files)
	return modeOf(files)
}

func modeOf(files []int) string {
	if len(files) == 0 {
		return ""
	}
	return "mount changes"
}
