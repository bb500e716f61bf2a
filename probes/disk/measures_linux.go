package disk

import "github.com/taintlet/taintlet/probes"

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
func (t Thresholds) measures(r *pathReport, all []probes.Measure) []probes.Measure {
	if r.silence > 0 {
		return append(all, probes.Measure{Name: "no_answer", Path: r.name, Unit: probes.Seconds, Value: r.silence.Seconds(), Degraded: t.BlockedAfter.Seconds()})
	}
	f, factor := &r.fileSystem, max(1, t.ClearFactor)
	if f.size > 0 {
		enough := float64(f.size) * t.AvailablePercent / 100
		all = append(all,
			probes.Measure{Name: "available", Path: r.name, Unit: probes.Bytes, Value: float64(f.available), Degraded: enough, Clear: enough * factor},
			probes.Measure{Name: "size", Path: r.name, Unit: probes.Bytes, Value: float64(f.size)})
	}
	if f.inodesTotal > 0 {
		enough := float64(f.inodesTotal) * t.InodesPercent / 100
		all = append(all,
			probes.Measure{Name: "free_inodes", Path: r.name, Unit: probes.Items, Value: float64(f.inodesFree), Degraded: enough, Clear: enough * factor},
			probes.Measure{Name: "inodes", Path: r.name, Unit: probes.Items, Value: float64(f.inodesTotal)})
	}
	return all
}
