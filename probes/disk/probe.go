// Package disk is the probe of DiskPressure. It samples the space and inodes of
// file systems, whether they can be written, and whether they answer at all.
package disk

import (
	"context"
	"path/filepath"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
	"github.com/taintlet/taintlet/probes/pressure"
)

// Thresholds say when a file system is full, and when a file system that does not
// answer makes the host Degraded.
type Thresholds struct {
	// AvailablePercent is the share of space, in percent (0 to 100), that must be
	// available to an unprivileged writer; below it the host is Degraded. The
	// percentage is taken of what such a writer could have at all, as in df(1),
	// which leaves the superuser's reserve out. 0: no such threshold.
	AvailablePercent float64
	// InodesPercent is the share of free inodes, in percent (0 to 100), below
	// which the host is Degraded. 0: no such threshold. It has no effect on file
	// systems that do not count inodes.
	InodesPercent float64
	// BlockedAfter is how long a path may give no answer before the host is
	// Degraded; until then it is Unknown. 0: it stays Unknown.
	BlockedAfter time.Duration
	// ClearFactor times the threshold must be free before there is enough again.
	// A write must be faster than its own threshold by this factor. 1 or more;
	// less counts as 1.
	ClearFactor float64
}

// Probe watches the host's file systems. It reports OK and Degraded, never
// Critical. The worst finding decides.
//
// The severity of space and inodes is that of any scarcity: 0 at ease, 50 at the
// threshold, 100 when nothing is left. That of times (a slow write, no answer) is
// 50 at the threshold and nears 100 as they grow. That of a file system that
// cannot be written is 100. One failed write is 75, two in a row are 100.
type Probe struct {
	*pressure.Trigger

	host       probes.Host
	thresholds Thresholds
	paths      []*watchedPath
	writers    []*writer
	// samplePath samples one path. It may hang.
	samplePath func(root, path string) (pathSample, error)

	// readMounts finds the mounts under the paths. It may hang.
	readMounts func([]wantedMount) []pathMounts
	mountCall  hostfile.SureCall[[]pathMounts]
	mountsAt   time.Time // when the mounts were read most recently
	// mountsMatter says that the mounts are to be read again with the next sample.
	mountsMatter bool

	stalls   pressure.Totals // of I/O
	stallsAt time.Time
}

const (
	// wakeStalledPercent is the percentage of a short time for which some task
	// must have waited for I/O to wake the probe.
	wakeStalledPercent = 50
	// busyPercent is the percentage of the time since the last sample for which
	// some task must have waited for I/O to make a write due early. Whatever wakes
	// the probe is more than that.
	busyPercent = 10
)

// mountsEvery is how often the mounts are read while nothing seems to have
// changed. In between, the flags that every statfs(2) returns anyway show most
// changes. They do not show ext4's emergencies, nor what lies beneath an overlay.
const mountsEvery = 30 * time.Second

var _ probes.Probe = (*Probe)(nil)

// New returns the probe of the file systems on which the paths lie. It also
// writes where writes says. Paths and directories are found under h.Root. Paths
// that do not exist are passed over, and the space of several on one device
// counts once. Where h.Root is not "/", a path through an absolute symbolic link
// is an error, because it would lead to a file system of the reader's own.
func New(h probes.Host, paths []string, t Thresholds, writes ...Write) *Probe {
	p := &Probe{
		Trigger: pressure.NewTrigger(h, "io", wakeStalledPercent), host: h, thresholds: t, samplePath: samplePath,
		readMounts: func(wanted []wantedMount) []pathMounts { return mountsOf(h.Proc, wanted) },
	}
	for _, name := range paths {
		p.paths = append(p.paths, &watchedPath{root: h.Root, name: name})
	}
	for _, w := range writes {
		if w.Directory != "" {
			p.writers = append(p.writers, newWriter(h, w))
		}
	}
	return p
}

// Condition returns DiskPressure.
func (*Probe) Condition() probes.Condition { return probes.DiskPressure }

// Observe takes a sample of all paths at once and judges it. It writes where a
// write is due, and returns by the context's deadline.
//
// A call that hangs is not repeated before it has come back, and Observe waits
// for it only once, so that it delays no other path later on. A path without an
// answer makes the Observation Unknown until BlockedAfter, unless there is a
// worse finding.
func (p *Probe) Observe(ctx context.Context) probes.Observation {
	return p.thresholds.judge(p.read(ctx))
}

// read starts all calls and waits until the last has been answered or the
// context ends.
func (p *Probe) read(ctx context.Context) (s sample) {
	for _, path := range p.paths {
		path.call.Start(func() pathAnswer {
			found, err := p.samplePath(path.root, path.name)
			return pathAnswer{found, err}
		})
	}
	if len(p.writers) > 0 {
		busy := p.isBusy()
		for _, w := range p.writers {
			w.start(busy)
		}
	}
	seen := map[uint64]bool{}
	for _, path := range p.paths {
		changed, answered := path.collect(ctx, &s)
		p.mountsMatter = p.mountsMatter || changed
		if answered && !seen[path.last.device] {
			seen[path.last.device] = true
			s.fileSystems = append(s.fileSystems, path.last.fileSystem)
		}
	}
	p.renewMounts(ctx)
	for _, path := range p.paths {
		s.mounts = path.appendMounts(s.mounts)
	}
	for _, w := range p.writers {
		s.writes = append(s.writes, w.collect(ctx))
	}
	p.mountsMatter = s.suspicious()
	return s
}

// isBusy says whether tasks have waited long for I/O since the last sample. It
// returns false where the kernel does not measure that.
func (p *Probe) isBusy() bool {
	now, found, _ := pressure.Read(p.host, "io")
	at := time.Now()
	apart := at.Sub(p.stallsAt)
	waited, ok := now.Since(p.stalls, apart)
	if apart >= pressure.ShortestStall {
		p.stalls, p.stallsAt = now, at
	}
	return found && ok && waited.Some >= busyPercent
}

// renewMounts reads the mounts when that is due. They make some findings more
// exact and add others. Mounts that cannot be read add nothing: that is no
// trouble of the disk's.
func (p *Probe) renewMounts(ctx context.Context) {
	if !p.mountsMatter && !p.mountsAt.IsZero() && time.Since(p.mountsAt) < mountsEvery {
		return
	}
	wanted := make([]wantedMount, len(p.paths))
	for i, path := range p.paths {
		wanted[i] = wantedMount{filepath.Join(path.root, path.name), path.last.mountID, path.last.device}
	}
	p.mountCall.Start(func() []pathMounts { return p.readMounts(wanted) })
	found, ok := p.mountCall.Wait(ctx)
	if !ok {
		return
	}
	p.mountsAt = time.Now()
	for i, path := range p.paths {
		path.mounts = found[i]
	}
}
