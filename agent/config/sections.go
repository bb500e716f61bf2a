package config

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/probes/disk"
	"github.com/taintlet/taintlet/probes/memory"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/probes/pid"
)

// Memory is the section of MemoryPressure. 0 in a threshold means that there is
// no such threshold.
type Memory struct {
	Sampling

	// AvailablePercent (of all memory but huge pages) and AvailableBytes: Degraded when
	// available memory is below the larger of the two.
	AvailablePercent float64           `json:"availablePercent" range:"0..100"`
	AvailableBytes   resource.Quantity `json:"availableBytes" range:"0..1Ei"` // more would not fit the sums that are made of it
	// EarlyPercent: an early taint is set when less is available.
	EarlyPercent float64 `json:"earlyPercent" range:"0..80"`
	// StalledPercent: Degraded when tasks waited for memory for this share of the last 2 s, as
	// far as the host reclaimed memory, and less than stalledAvailablePercent is available. 0:
	// how long tasks wait never counts.
	StalledPercent float64 `json:"stalledPercent" range:"0..100"`
}

// Stalls are noisy, and count only together with little available memory: a pod at its own limit
// stalls 31 % of the time on an idle host. A StalledPercent of 0 switches both off.
const (
	// stalledAvailablePercent is the share of memory below which stalls count.
	stalledAvailablePercent = 15
	// criticalStalledPercent is the share of the last 10 s for which all tasks waited, and less
	// than the first threshold is available: such a sample is critical.
	criticalStalledPercent = 40
)

// defaultMemory has the kubelet's memory.available as its floor.
func defaultMemory() Section {
	return &Memory{
		Sampling: DefaultSampling(4*time.Second, 2, 3), AvailablePercent: 5, AvailableBytes: resource.MustParse("100Mi"), StalledPercent: 15,
	}
}

// Thresholds returns what the probe judges by.
func (m *Memory) Thresholds() memory.Thresholds {
	t := memory.Thresholds{
		AvailablePercent: m.AvailablePercent, EarlyPercent: m.EarlyPercent, AvailableBytes: uint64(max(0, m.AvailableBytes.Value())), ClearFactor: m.Debounce.ClearFactor,
	}
	if m.StalledPercent > 0 {
		t.StalledPercent, t.StalledAvailablePercent, t.CriticalStalledPercent = m.StalledPercent, stalledAvailablePercent, criticalStalledPercent
	}
	return t
}

func (m *Memory) early() float64 { return m.EarlyPercent }

// Validate returns every impossible value.
func (m *Memory) Validate(at *field.Path) field.ErrorList {
	return reachable(m.Debounce, at, "availablePercent", m.AvailablePercent, m.EarlyPercent)
}

// Disk is the section of DiskPressure.
type Disk struct {
	Sampling

	// Paths name the file systems to watch, by any path on them. Paths that do
	// not exist are skipped, and named in the message. Several paths on one device count once.
	Paths []string `json:"paths"`
	// MountPoints are paths that are watched as well, and at which the host is to have mounted
	// a file system: Degraded where it has not.
	MountPoints []string `json:"mountPoints"`
	// AvailablePercent and InodesPercent (0: no threshold): Degraded
	// when less of the space, or of the inodes, is free.
	AvailablePercent float64 `json:"availablePercent" range:"0..100"`
	InodesPercent    float64 `json:"inodesPercent" range:"0..100"`
	// EarlyPercent: an early taint is set when less of the space is free.
	EarlyPercent float64    `json:"earlyPercent" range:"0..80"`
	WriteProbe   WriteProbe `json:"writeProbe"`
}

// WriteProbe configures the small write that tells whether a file system can be
// written at all.
type WriteProbe struct {
	// Directory takes a file of 4 KiB for a moment. Empty: no writes.
	Directory string `json:"directory"`
}

const (
	// blockedAfter is how long a path, or a write, may give no answer. Devices and servers that
	// fail over answer again within half a minute; a call that is pending until then is Unknown.
	blockedAfter = 30 * time.Second
	// slowAfter is how long a write of 4 KiB may take. Slow writes count if no write was faster for
	// a minute. A disk at its limit needs about 100 ms, and the kernel calls a task hung after 2
	// minutes.
	slowAfter = 2 * time.Second
	// writesEvery is the time between two writes that go well. A probe that samples more often
	// than by default writes more often too, by the same share.
	writesEvery = 10 * time.Second
)

// defaultDisk has the thresholds of the kubelet's nodefs.available and
// nodefs.inodesFree.
func defaultDisk() Section {
	return &Disk{
		Sampling: DefaultSampling(4*time.Second, 2, 3), Paths: []string{"/", "/var/lib/kubelet", "/var/lib/containerd"}, MountPoints: []string{},
		AvailablePercent: 10, InodesPercent: 5,
	}
}

// Thresholds returns what the probe judges by.
func (d *Disk) Thresholds() disk.Thresholds {
	return disk.Thresholds{
		AvailablePercent: d.AvailablePercent, InodesPercent: d.InodesPercent, EarlyPercent: d.EarlyPercent, BlockedAfter: blockedAfter, ClearFactor: d.Debounce.ClearFactor,
	}
}

// Write returns where the probe writes, and how long that may take.
func (d *Disk) Write() disk.Write {
	return disk.Write{Directory: d.WriteProbe.Directory, Interval: min(writesEvery, d.Period.Duration*5/2), Slow: slowAfter}
}

func (d *Disk) early() float64 { return d.EarlyPercent }

// maxPaths is how many paths a file may have, and maxPath how long one is (PATH_MAX).
const (
	maxPaths = 32
	maxPath  = 4096
)

// Validate returns every impossible value.
func (d *Disk) Validate(at *field.Path) field.ErrorList {
	errs := entries(d.Paths, maxPaths, at.Child("paths"), absolute)
	errs = append(errs, entries(d.MountPoints, maxPaths, at.Child("mountPoints"), absolute)...)
	if len(d.Paths) == 0 {
		errs = append(errs, field.Required(at.Child("paths"), "at least one absolute path"))
	}
	if directory := d.WriteProbe.Directory; directory != "" {
		errs = append(errs, absolute(directory, at.Child("writeProbe", "directory"))...)
	}
	errs = append(errs, reachable(d.Debounce, at, "inodesPercent", d.InodesPercent, 0)...)
	return append(errs, reachable(d.Debounce, at, "availablePercent", d.AvailablePercent, d.EarlyPercent)...)
}

// PID is the section of PIDPressure.
type PID struct {
	Sampling

	// UsedPercent is the share of the host's task limit from which on it is Degraded.
	UsedPercent float64 `json:"usedPercent" range:"0.001..100"`
	// EarlyPercent: an early taint is set from this used share on.
	EarlyPercent float64 `json:"earlyPercent" range:"0,20..99"`
}

func (p *PID) early() float64 { return p.EarlyPercent }

// criticalUsedPercent is the share of the task limit from which on a sample is critical: soon
// nothing can be started, not even a shell. Without a rule for Critical nothing is evicted.
const criticalUsedPercent = 95

func defaultPID() Section {
	return &PID{Sampling: DefaultSampling(4*time.Second, 2, 3), UsedPercent: 85}
}

// Thresholds returns what the probe judges by.
func (p *PID) Thresholds() pid.Thresholds {
	return pid.Thresholds{UsedPercent: p.UsedPercent, EarlyPercent: p.EarlyPercent, CriticalUsedPercent: criticalUsedPercent, ClearFactor: p.Debounce.ClearFactor}
}

// Validate returns every impossible value.
func (p *PID) Validate(at *field.Path) field.ErrorList {
	early := 0.0
	if p.EarlyPercent > 0 {
		early = 100 - p.EarlyPercent
	}
	return reachable(p.Debounce, at, "usedPercent", 100-p.UsedPercent, early)
}

// Network is the section of NetworkUnavailable.
type Network struct {
	Sampling

	// DisabledClasses are kinds of checks that are not made.
	DisabledClasses []verdict.Class `json:"disabledClasses"`
}

func defaultNetwork() Section {
	n := &Network{Sampling: DefaultSampling(5*time.Second, 3, 5), DisabledClasses: []verdict.Class{}}
	n.MinInterval, n.FollowUp = time.Second, time.Second // bursts of probes would add to the trouble
	return n
}

// Validate returns every impossible value.
func (n *Network) Validate(at *field.Path) field.ErrorList {
	classes := verdict.Classes()
	return entries(n.DisabledClasses, len(classes), at.Child("disabledClasses"), func(class verdict.Class, at *field.Path) field.ErrorList {
		return oneOf(class, at, classes...)
	})
}
