package status

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/taintlet/taintlet/cmd/kubectl-taintlet/installation"
	"github.com/taintlet/taintlet/taints"
)

// watcher is a Fleet that one goroutine changes and another one shows.
type watcher struct {
	mu     sync.Mutex
	fleet  *Fleet
	synced bool
	// installed: what is installed was read once.
	installed bool
	// changed has a value when something changed since the last Report.
	changed chan struct{}
	errors  io.Writer
	// told is the trouble that was told last, so that it is told once.
	told string
}

func newWatcher(fleet *Fleet, errors io.Writer) *watcher {
	return &watcher{fleet: fleet, changed: make(chan struct{}, 1), errors: errors}
}

func (w *watcher) report(now time.Time) (r Report, isWell, synced bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r = w.fleet.Report(now)
	isComplete := !slices.ContainsFunc(w.fleet.names, func(name string) bool { return !w.fleet.Has(name) })
	return r, isComplete && w.fleet.IsWell(r), w.synced && w.installed
}

// reread reads what is installed again and again until the context ends.
func (w *watcher) reread(ctx context.Context, reader *installation.Reader) {
	for {
		begin := time.Now()
		i, err := reader.Read(ctx)
		if err == nil {
			w.change(func() {
				w.fleet.SetInstallation(i)
				w.installed = true
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(readEvery, readShare*time.Since(begin))):
		}
	}
}

func (w *watcher) change(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
	select {
	case w.changed <- struct{}{}:
	default: // to be shown already
	}
}

// Reset implements apiserver.Follower. What was known is shown until all is told anew.
func (w *watcher) Reset() {
	w.change(func() {
		w.synced = false
		w.fleet.Reset()
	})
}

// Seen implements apiserver.Follower.
func (w *watcher) Seen(node *taints.Node) { w.change(func() { w.fleet.Add(node) }) }

// Gone implements apiserver.Follower.
func (w *watcher) Gone(name string) { w.change(func() { w.fleet.Remove(name) }) }

// Synced implements apiserver.Follower.
func (w *watcher) Synced() { w.change(func() { w.synced, w.told = true, "" }) }

// Failed implements apiserver.Follower.
func (w *watcher) Failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && err.Error() != w.told {
		w.told = err.Error()
		fmt.Fprintf(w.errors, "taintlet: %v; trying again\n", err)
	}
}
