package consumers

import (
	"context"
	"fmt"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
)

// Growth is a probe of disks whose bad samples tell how much was written since all were healthy.
// Who wrote it cannot be seen without privileges: the files of a pod's emptyDir and of its logs
// are readable by root only.
type Growth struct {
	probes.Measurer

	// healthy has what was left at the newest healthy sample, at is its time.
	healthy  []probes.Measure
	at       time.Time
	measures []probes.Measure
}

// Grow returns a probe of disks that tells what was written.
func Grow(inner probes.Measurer) *Growth { return &Growth{Measurer: inner} }

// Observe takes a sample.
func (g *Growth) Observe(ctx context.Context) probes.Observation {
	o := g.Measurer.Observe(ctx)
	if text := g.follow(o, time.Now()); text != "" {
		o.Message += "; " + text
	}
	return o
}

// follow takes in a sample, and says what was written where it is bad.
func (g *Growth) follow(o probes.Observation, now time.Time) string {
	switch {
	case isHealthy(o):
		g.healthy, g.at = g.Measures(g.healthy[:0]), now
		return ""
	case o.Level <= probes.OK || len(g.healthy) == 0:
		return ""
	}
	g.measures = g.Measures(g.measures[:0])
	most, lost := g.most()
	if most == nil {
		return ""
	}
	amount := trend.BytesText(lost)
	if most.Name == leftInodes {
		amount = fmt.Sprintf("%.0f inodes", lost)
	}
	return amount + " written in " + trend.TimeText(now.Sub(g.at))
}

// most returns the scarce quantity that lost the largest share of its total, and how much it lost.
// It returns nil if nearly nothing was lost, or if several file systems are scarce, because the
// message names only one of them.
func (g *Growth) most() (most *probes.Measure, lost float64) {
	mostShare, scarce := leastShare, ""
	for i := range g.measures {
		m := &g.measures[i]
		total := map[string]string{leftSpace: "size", leftInodes: "inodes"}[m.Name]
		if total == "" || m.Value >= m.Degraded {
			continue // not what is scarce
		}
		if scarce != "" && scarce != m.Path {
			return nil, 0
		}
		scarce = m.Path
		before, size := find(g.healthy, m.Name, m.Path), find(g.measures, total, m.Path)
		if before == nil || size == nil || size.Value <= 0 {
			continue
		}
		if share := (before.Value - m.Value) / size.Value; share >= mostShare {
			most, mostShare, lost = m, share, before.Value-m.Value
		}
	}
	return most, lost
}

// The names of a file system's quantities, as the probe of disks uses them.
const (
	leftSpace  = "available"
	leftInodes = "free_inodes"
)

func find(all []probes.Measure, name, path string) *probes.Measure {
	for i := range all {
		if all[i].Name == name && all[i].Path == path {
			return &all[i]
		}
	}
	return nil
}
