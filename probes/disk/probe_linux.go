package disk

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/pressure"
)

// Probe watches the host's file systems. It reports OK and Degraded, never
// Critical.
//
// Each path and each write directory is judged alone, and the worst finding decides. A path or
// directory that cannot be read has no finding, and the message names it. The remaining paths then
// decide. But if none of their findings is Degraded, the Observation is Unknown
//   - while no path at all can be read,
//   - while an answer may still come (until BlockedAfter),
//   - while a path or directory that cannot be read was not healthy when it was last
//     read: bad, near a threshold, or healthy for less than two minutes. A taint may
//     have been set for it, and nothing says that it has recovered.
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
	// sampleProgram reads from the disk of a program. It may hang.
	sampleProgram func(root, path string) (pathSample, error)
	// program reads from the disk on which this program lies.
	program *watchedPath

	mounts mountReader

	// writesMatter says that every directory is to be written to with the next
	// sample.
	writesMatter bool
	newest       sample
}

// wakeStalledPercent is the percentage of a short time for which some task
// must have waited for I/O to wake the probe.
const wakeStalledPercent = 50

// New returns the probe of the file systems on which the paths lie. It also
// writes where writes says. Paths and directories are found under h.Root, as by a
// process whose root that is: absolute symbolic links stay inside. Paths that do
// not exist are passed over, and the space of several on one device counts once.
func New(h probes.Host, paths []string, t Thresholds, writes ...Write) *Probe {
	p := &Probe{
		Trigger: pressure.NewTrigger(h, "io", wakeStalledPercent),
		host:    h, thresholds: t, samplePath: samplePath, sampleProgram: sampleDisk,
		program: &watchedPath{name: program},
		mounts:  mountReader{read: func(wanted []wantedMount) []pathMounts { return mountsOf(h, wanted) }},
	}
	for _, name := range paths {
		p.paths = append(p.paths, &watchedPath{root: h.Root, name: name})
	}
	for _, w := range writes {
		if w.Directory != "" {
			p.writers = append(p.writers, &writer{Write: w, write: newTestFile(h, w.Directory).write})
		}
	}
	return p
}

// RequireMounts watches these paths as well. The host is Degraded while it has mounted nothing
// there: the ordinary directory at such a path lies on another file system.
func (p *Probe) RequireMounts(points ...string) *Probe {
	for _, point := range points {
		p.paths = slices.DeleteFunc(p.paths, func(path *watchedPath) bool { return path.name == point })
		p.paths = append(p.paths, &watchedPath{root: p.host.Root, name: point, point: point})
	}
	return p
}

// Condition returns DiskPressure.
func (*Probe) Condition() probes.Condition { return probes.DiskPressure }

// Observe takes a sample of all paths at once and judges it. It writes where a
// write is due, and returns by the context's deadline.
//
// A call that hangs is not repeated before it has come back, and Observe waits
// for it only once, so that it delays no other path later on.
func (p *Probe) Observe(ctx context.Context) probes.Observation {
	s := p.read(ctx)
	p.newest = s
	verdicts := p.thresholds.judge(s)
	now := time.Now()
	for i, path := range append(slices.Clone(p.paths), p.program) {
		path.follow(&verdicts.paths[i], s.paths[i].fileSystem, now)
	}
	for i, w := range p.writers {
		v := &verdicts.writes[i]
		w.health.follow(v.isUnhealthy(), v.unknown != nil, now)
	}
	return verdicts.join()
}

// read starts all calls and waits until the last has been answered or the
// context ends.
func (p *Probe) read(ctx context.Context) (s sample) {
	for _, path := range p.paths {
		path.start(p.samplePath)
	}
	p.program.start(p.sampleProgram)
	for _, w := range p.writers {
		w.start(p.writesMatter)
	}
	p.writesMatter = false
	for _, path := range p.paths {
		s.paths = append(s.paths, p.collect(ctx, path))
	}
	p.renewMounts(ctx)
	for i, path := range p.paths {
		if path.mounts.through.point != path.through {
			path.start(p.samplePath)
			s.paths[i] = p.collect(ctx, path)
		}
		r := &s.paths[i]
		r.title = path.title
		if path.mounts.isUnderQuota() {
			r.seenBy = ", as a container sees it"
		}
		r.mounts = path.describeMounts(r.answered)
		r.bare = path.mounts.isBare()
		if path.mounts.own.superReadOnly {
			r.fileSystem = fileSystem{} // nobody can fill it, by any mount, and images are full by design
		}
	}
	p.countOnce(s.paths)
	s.paths = append(s.paths, p.readProgram(ctx))
	for _, w := range p.writers {
		sample := w.collect(ctx)
		sample.title = p.titleOf(w.Directory, w.place.device)
		s.writes = append(s.writes, sample)
		p.mounts.matter = p.mounts.matter || sample.failures == 1
	}
	return s
}

// collect takes the answer about a path.
func (p *Probe) collect(ctx context.Context, path *watchedPath) pathState {
	r := path.collect(ctx)
	p.mounts.matter, p.writesMatter = p.mounts.matter || r.remounted, p.writesMatter || r.replaced
	return r
}

// countOnce counts the space of each file system for one path only: the first. Of an overlay and a
// path beneath it, that is the path which reports more, because a quota reports less. If only the
// name of a directory tells which file system lies beneath, two paths count as one only if their
// sizes are equal.
func (p *Probe) countOnce(states []pathState) {
	for i, path := range p.paths {
		for j, other := range p.paths[:i] {
			a, b := &states[i], &states[j]
			lowest := path.mounts.lowest().device
			switch {
			case !a.answered || !b.answered:
			case path.last.device == other.last.device:
				a.fileSystem = fileSystem{}
			case lowest == 0 || lowest != other.mounts.lowest().device:
			case a.fileSystem.size == b.fileSystem.size:
				a.fileSystem = fileSystem{}
			case !path.mounts.isCertain() || !other.mounts.isCertain():
			case a.fileSystem.size > b.fileSystem.size:
				b.fileSystem = fileSystem{}
			default:
				a.fileSystem = fileSystem{}
			}
		}
	}
}

// readProgram takes what reading from the disk of this program showed: that the disk fails,
// or gives no answer. Its space and its flags count for the paths only.
func (p *Probe) readProgram(ctx context.Context) pathState {
	r := p.program.collect(ctx)
	r.fileSystem, r.answered = fileSystem{}, false
	r.title = cmp.Or(p.titleOf(program, p.program.last.device), "the disk of taintlet's program")
	return r
}

// titleOf returns the title of a path that has that name or lies on that device; empty: there
// is none.
func (p *Probe) titleOf(name string, device uint64) (title string) {
	for _, path := range p.paths {
		if path.name == name || device != 0 && path.last.device == device {
			title = path.title
		}
	}
	return title
}

// renewMounts reads the mounts when that is due. They make some findings more
// exact and add others. Mounts that cannot be read add nothing, because the disk is not
// the cause.
func (p *Probe) renewMounts(ctx context.Context) {
	if !p.mounts.isDue() {
		return
	}
	wanted := make([]wantedMount, len(p.paths))
	for i, path := range p.paths {
		wanted[i] = wantedMount{filepath.Join(path.root, path.name), path.last.mountID, path.last.device, path.mounts, path.point}
	}
	found, ok := p.mounts.renew(ctx, wanted)
	if !ok {
		return
	}
	for i, path := range p.paths {
		path.mounts = found[i]
	}
	for _, path := range p.paths {
		roles, lowest := path.mounts.role(path.name), path.mounts.lowest().device
		for _, other := range p.paths {
			if lowest != 0 && lowest == other.mounts.lowest().device {
				roles |= other.mounts.role(other.name)
			}
		}
		path.title = path.mounts.title(path.name, roles)
	}
}

var _ probes.Measurer = (*Probe)(nil)

// Measures appends the space and the inodes of each file system, and for how long a path
// or a write has not answered. Of the writes it appends how long the last one took, and
// for how long all were slow.
func (p *Probe) Measures(all []probes.Measure) []probes.Measure {
	t := &p.thresholds
	for i := range p.newest.paths {
		all = t.measures(&p.newest.paths[i], all)
	}
	for i := range p.newest.writes {
		w := &p.newest.writes[i]
		switch {
		case w.silence > 0:
			all = append(all, probes.Measure{Name: "write_no_answer", Path: w.Directory, Unit: probes.Seconds, Value: w.silence.Seconds(), Degraded: t.BlockedAfter.Seconds()})
		case w.err == nil:
			all = append(all,
				probes.Measure{Name: "write", Path: w.Directory, Unit: probes.Seconds, Value: w.took.Seconds(), Degraded: w.Slow.Seconds(), Clear: w.Slow.Seconds() / max(1, t.ClearFactor)},
				probes.Measure{Name: "writes_slow", Path: w.Directory, Unit: probes.Seconds, Value: w.slowFor.Seconds(), Degraded: slowFor.Seconds()})
		}
	}
	return all
}

// measures appends what one path showed.
func (t Thresholds) measures(r *pathState, all []probes.Measure) []probes.Measure {
	if r.silence > 0 {
		return append(all, probes.Measure{Name: "no_answer", Path: r.name, Unit: probes.Seconds, Value: r.silence.Seconds(), Degraded: t.BlockedAfter.Seconds()})
	}
	f := &r.fileSystem
	if f.size > 0 {
		enough := t.space(f)
		all = append(all,
			probes.Measure{Name: "available", Path: r.name, Unit: probes.Bytes, Value: float64(f.available), Degraded: enough.Amount, Clear: enough.Clear},
			probes.Measure{Name: "size", Path: r.name, Unit: probes.Bytes, Value: float64(f.size)})
	}
	if f.inodesTotal > 0 {
		enough := t.inodes(f)
		all = append(all,
			probes.Measure{Name: "free_inodes", Path: r.name, Unit: probes.Items, Value: float64(f.inodesFree), Degraded: enough.Amount, Clear: enough.Clear},
			probes.Measure{Name: "inodes", Path: r.name, Unit: probes.Items, Value: float64(f.inodesTotal)})
	}
	return all
}
