package consumers

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
)

// disks is a probe of two file systems.
type disks struct {
	probes.PeriodOnly
	level          probes.Level
	severity       int
	root, data     float64 // bytes left of 100 GiB
	inodes         float64 // left of a million, on data
	isDataUnknown  bool
	rootDegradedAt float64
}

func (*disks) Condition() probes.Condition { return probes.DiskPressure }
func (d *disks) Observe(context.Context) probes.Observation {
	return probes.Observation{Condition: probes.DiskPressure, Level: d.level, Severity: d.severity, Message: "m"}
}
func (d *disks) Measures(all []probes.Measure) []probes.Measure {
	all = append(all, probes.Measure{Name: "available", Path: "/", Value: d.root, Degraded: d.rootDegradedAt}, probes.Measure{Name: "size", Path: "/", Value: 100 * gib})
	if d.isDataUnknown {
		return all
	}
	return append(all,
		probes.Measure{Name: "available", Path: "/data", Value: d.data, Degraded: 10 * gib}, probes.Measure{Name: "size", Path: "/data", Value: 100 * gib},
		probes.Measure{Name: "free_inodes", Path: "/data", Value: d.inodes, Degraded: 5e4}, probes.Measure{Name: "inodes", Path: "/data", Value: 1e6})
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	then := time.Date(2026, 11, 23, 8, 12, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		change func(*disks)
		want   string
	}{
		"space":                     {func(d *disks) { d.data = 8 * gib }, "22 GiB written in 41 s"},
		"inodes":                    {func(d *disks) { d.inodes = 1e4 }, "190000 inodes written in 41 s"},
		"what is not scarce":        {func(d *disks) { d.root = 20 * gib; d.data = 9 * gib }, "21 GiB written in 41 s"},
		"two are scarce":            {func(d *disks) { d.root, d.data = 5*gib, 8*gib }, ""},
		"nothing was written":       {func(d *disks) { d.data = 29.9 * gib }, ""},
		"less than explains it":     {func(d *disks) { d.root, d.rootDegradedAt = 89.8*gib, 90*gib }, ""},
		"another fault of the disk": {func(*disks) {}, ""},
		"it cannot be read":         {func(d *disks) { d.isDataUnknown = true }, ""},
		"it is only near":           {func(d *disks) { d.data, d.level = 8*gib, probes.OK }, ""},
		"it has become Unknown":     {func(d *disks) { d.data, d.level = 8*gib, probes.Unknown }, ""},
	} {
		d := &disks{level: probes.OK, root: 90 * gib, data: 30 * gib, inodes: 2e5, rootDegradedAt: 10 * gib}
		g := Grow(d)
		if text := g.follow(d.Observe(t.Context()), then); text != "" {
			t.Errorf("healthy: %q", text)
		}
		d.level, d.severity = probes.Degraded, 60
		test.change(d)
		if text := g.follow(d.Observe(t.Context()), then.Add(41*time.Second)); text != test.want {
			t.Errorf("%s: %q, want %q", name, text, test.want)
		}
	}
}

// A host that was never seen healthy says nothing, and the message has what is said.
func TestGrowthInTheMessage(t *testing.T) {
	t.Parallel()
	d := &disks{level: probes.Degraded, severity: 60, data: 8 * gib, inodes: 2e5}
	g := Grow(d)
	if o := g.Observe(t.Context()); o.Message != "m" {
		t.Errorf("%q", o.Message)
	}
	d.level, d.severity, d.data = probes.OK, 0, 30*gib
	g.Observe(t.Context())
	d.level, d.severity, d.data = probes.Degraded, 60, 8*gib
	if o := g.Observe(t.Context()); !strings.HasPrefix(o.Message, "m; 22 GiB written in ") {
		t.Errorf("%q", o.Message)
	}
}
