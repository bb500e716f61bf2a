package disk

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// watchedPath is one path to sample, what is remembered of it, and the call that
// may be out about it.
type watchedPath struct {
	root, name string
	// point is the name, of a path at which the host is to have mounted something; else empty.
	point string
	call  hostfile.SoleCall[pathAnswer]

	last     pathSample // of the last answer
	title    string     // see pathState
	through  string     // a mount whose space counts, if a quota hides that of the path
	failures int        // samples in a row in which the file system failed
	mounts   pathMounts
	// Whether they could be written when first seen: the path itself, by
	// statfs(2), and the file system beneath an overlay, by its mount.
	itself, beneath firstSight
	health          health
	healthy         fileSystem // of the newest healthy sample
	healthyAt       time.Time
}

// pathAnswer is what one call about a path found out.
type pathAnswer struct {
	sample pathSample
	err    error
}

// firstSight remembers whether a thing could be written when it was first seen.
// A thing that was read-only then (the root of an immutable system, or of a container)
// is meant to be.
type firstSight struct {
	seen, writable bool
	device         uint64
}

// fell says whether the thing could be written when first seen and cannot now. On
// another device it is another thing.
func (f *firstSight) fell(device uint64, readOnly bool) bool {
	if !f.seen || f.device != device {
		*f = firstSight{seen: true, writable: !readOnly, device: device}
	}
	return f.writable && readOnly
}

// start begins to ask about the path, unless an earlier call is still out.
func (w *watchedPath) start(sample func(root, path string) (pathSample, error)) {
	root, name, through := w.root, w.name, w.mounts.through.point
	w.through = through
	w.call.Start(func() (answer pathAnswer) {
		answer.sample, answer.err = sample(root, name)
		if through == "" || answer.err != nil {
			return answer
		}
		// A quota makes the size of the file system smaller, never larger.
		if whole, err := sample("/", through); err == nil && whole.size > answer.sample.size {
			whole.device = answer.sample.device
			answer.sample.fileSystem = whole.fileSystem
		}
		return answer
	})
}

// collect takes the answer about the path.
func (w *watchedPath) collect(ctx context.Context) (r pathState) {
	r.name, r.title, r.unhealthy = w.name, w.title, w.health.unhealthy
	answer, ok := w.call.WaitOnce(ctx)
	if !ok {
		r.silence = max(w.call.Silence(), 1)
		return r
	}
	switch {
	case errors.Is(answer.err, fs.ErrNotExist):
		w.forget()
		r.absent = true
		return r
	case isBroken(answer.err):
		w.failures++
		r.failures, r.err = w.failures, answer.err
		return r
	case answer.err != nil:
		r.trouble = probes.Because("StatfsFailed", "looking at the file system of %s: %w", w.name, answer.err)
		return r
	}
	w.failures = 0
	old := w.last
	if old.path != "" && answer.sample.identity() != old.identity() {
		w.forget() // another file system is mounted there now
		r.unhealthy, r.replaced = false, true
	}
	w.last = answer.sample
	w.last.path = w.name
	r.answered, r.fileSystem, r.healthy, r.since = true, w.last.fileSystem, w.healthy, time.Since(w.healthyAt)
	r.remounted = r.replaced || answer.sample.readOnly != old.readOnly || answer.sample.mountID != old.mountID
	return r
}

// follow takes in what a sample said of the path.
func (w *watchedPath) follow(v *judgement, f fileSystem, now time.Time) {
	w.health.follow(v.isUnhealthy(), v.unknown != nil, now)
	if v.found && !v.isUnhealthy() && v.worst.Severity == 0 {
		w.healthy, w.healthyAt = f, now
	}
}

// forget starts the path's history afresh.
func (w *watchedPath) forget() {
	*w = watchedPath{root: w.root, name: w.name, point: w.point, call: w.call}
}

// describeMounts returns what is known about the mounts under the path. Whether the
// path itself can be written is known only while it answers.
func (w *watchedPath) describeMounts(answered bool) (all []mountSample) {
	if w.last.path == "" {
		return nil
	}
	own := mountSample{mount: w.mounts.own}
	own.fell = answered && w.itself.fell(w.last.device, w.last.readOnly)
	all = append(all, own)
	if beneath := w.mounts.beneath; beneath.point != "" {
		fell := w.beneath.fell(beneath.device, beneath.readOnly || beneath.superReadOnly)
		all = append(all, mountSample{mount: beneath, fell: fell})
	}
	return all
}
