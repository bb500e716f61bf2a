// Package disk is the probe of DiskPressure.
package disk

import (
	"context"
	"path/filepath"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
	"github.com/taintlet/taintlet/probes/pressure"
)

// Thresholds say when a file system is full, and when it is given up.
type Thresholds struct {
	// AvailablePercent is the share of space that an unprivileged writer can
	// still get, in percent (0 to 100), below which the host is Degraded. It is
	// of what such a writer could have at all, as in df(1): the reserve of the
	// superuser is not part of it. 0: no such threshold.
	AvailablePercent float64
	// InodesPercent is the share of free inodes, in percent (0 to 100), below
	// which the host is Degraded. 0: no such threshold. File systems that do not
	// count inodes have none to run out of.
	InodesPercent float64
	// BlockedAfter is how long a path may give no answer before the host is
	// Degraded; until then it is Unknown. 0: it stays Unknown.
	BlockedAfter time.Duration
	// ClearFactor times the threshold must be free before there is enough
	// again, and a write must be as many times faster than its own threshold. 1
	// or more; less counts as 1.
	ClearFactor float64
}

// Probe watches the host's file systems: space, inodes, whether they can be
// written, and whether they answer at all. It knows OK and Degraded; the worst
// finding decides.
//
// The severity of space and inodes is that of any scarcity: 0 at ease, 50 at
// the threshold, 100 when nothing is left. Of times (a slow write, no answer)
// it is 50 at the threshold and nears 100 as they grow. A file system that
// cannot be written is 100; one failed write is 75, two in a row are 100.
type Probe struct {
	*pressure.Trigger

	host       probes.Host
	thresholds Thresholds
	paths      []*watchedPath
	writers    []*writer
	// look is asked about one path; it may hang.
	samplePath func(root, path string) (pathSample, error)

	// readMounts finds the mounts under the paths; it may hang.
	readMounts func([]wantedMount) []pathMounts
	mountCall  hostfile.SureCall[[]pathMounts]
	mountsAt   time.Time // when the mounts were read last
	// mountsMatter: what the mounts said last was worth reading them again soon.
	mountsMatter bool

	stalls   pressure.Totals // of I/O at the last look
	stallsAt time.Time
}

const (
	// wakeIOStalledPercent of a short time that some task waited for I/O wake
	// the probe.
	wakeIOStalledPercent = 50
	// busyPercent of the time since the last look that some task waited for I/O
	// make a write due early. A look that the trigger asked for has it.
	busyPercent = 10
)

// mountsEvery is how often the mounts are read while nothing seems to have
// changed. The flags that statfs(2) gives for nothing in every look cover all
// of them but those of ext4's emergencies and of what lies beneath an overlay.
const mountsEvery = 30 * time.Second

var _ probes.Probe = (*Probe)(nil)

// New returns the probe of the file systems on which the paths lie, which
// also writes where writes says. Paths and directories are looked for under
// h.Root; paths that do not exist are passed over, and the space of several on
// one device counts once. Where h.Root is not "/", a path through an absolute
// symbolic link is an error, for it would lead to a file system of the
// reader's own.
func New(h probes.Host, paths []string, t Thresholds, writes ...Write) *Probe {
	d := &Probe{
		Trigger: pressure.NewTrigger(h, "io", wakeIOStalledPercent), host: h, thresholds: t, samplePath: samplePath,
		readMounts: func(wanted []wantedMount) []pathMounts { return mountsOf(h.Proc, wanted) },
	}
	for _, path := range paths {
		d.paths = append(d.paths, &watchedPath{root: h.Root, path: path})
	}
	for _, w := range writes {
		if w.Directory != "" {
			d.writers = append(d.writers, newWriter(h, w))
		}
	}
	return d
}

// Condition is DiskPressure.
func (*Probe) Condition() probes.Condition { return probes.DiskPressure }

// Observe asks about all paths at once, writes where it is time to, and
// returns by the context's deadline. What hangs is not asked again before that
// call has come back, nor waited for a second time: what does answer is heard
// at once. A path that gives no answer makes the Observation Unknown until
// BlockedAfter, unless there is a worse finding.
func (d *Probe) Observe(ctx context.Context) probes.Observation {
	return d.thresholds.judge(d.read(ctx))
}

// read asks about everything and waits until the last has answered or the
// context ends.
func (d *Probe) read(ctx context.Context) (s sample) {
	for _, p := range d.paths {
		p.call.Start(func() pathAnswer {
			look, err := d.samplePath(p.root, p.path)
			return pathAnswer{look, err}
		})
	}
	if len(d.writers) > 0 {
		busy := d.isBusy()
		for _, w := range d.writers {
			w.start(busy)
		}
	}
	seen := map[uint64]bool{}
	for _, p := range d.paths {
		changed, answered := p.collect(ctx, &s)
		d.mountsMatter = d.mountsMatter || changed
		if answered && !seen[p.last.device] {
			seen[p.last.device] = true
			s.fileSystems = append(s.fileSystems, p.last.fileSystem)
		}
	}
	d.renewMounts(ctx)
	for _, p := range d.paths {
		s.mounts = p.appendMounts(s.mounts)
	}
	for _, w := range d.writers {
		s.writes = append(s.writes, w.collect(ctx))
	}
	d.mountsMatter = s.suspicious()
	return s
}

// isBusy says whether tasks have waited long for I/O since the last look. No,
// where the kernel does not tell.
func (d *Probe) isBusy() bool {
	now, found, _ := pressure.Read(d.host, "io")
	at := time.Now()
	apart := at.Sub(d.stallsAt)
	waited, ok := now.Since(d.stalls, apart)
	if apart >= pressure.ShortestStall {
		d.stalls, d.stallsAt = now, at
	}
	return found && ok && waited.Some >= busyPercent
}

// renewMounts reads the mounts when it is time to. They make a finding more
// exact and add some; what cannot be read adds nothing, and is no trouble of
// the disk's.
func (d *Probe) renewMounts(ctx context.Context) {
	if !d.mountsMatter && !d.mountsAt.IsZero() && time.Since(d.mountsAt) < mountsEvery {
		return
	}
	wanted := make([]wantedMount, len(d.paths))
	for i, p := range d.paths {
		wanted[i] = wantedMount{filepath.Join(p.root, p.path), p.last.mountID, p.last.device}
	}
	d.mountCall.Start(func() []pathMounts { return d.readMounts(wanted) })
	found, ok := d.mountCall.Wait(ctx)
	if !ok {
		return
	}
	d.mountsAt = time.Now()
	for i, p := range d.paths {
		p.mounts = found[i]
	}
}
