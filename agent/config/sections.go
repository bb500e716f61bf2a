package config

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes/disk"
	"github.com/taintlet/taintlet/probes/memory"
	"github.com/taintlet/taintlet/probes/network/verdict"
	"github.com/taintlet/taintlet/probes/pid"
)

// Memory is the section of MemoryPressure. 0 in a threshold means that there is
// no such threshold.
type Memory struct {
	Sampling

	// AvailablePercent (0 to 100, of all memory but huge pages) and
	// AvailableBytes: Degraded when available memory is below the larger of the
	// two.
	AvailablePercent float64           `json:"availablePercent"`
	AvailableBytes   resource.Quantity `json:"availableBytes"`
	// StalledPercent: Degraded when tasks waited for memory for this share of
	// the last 2 s, as far as the host reclaimed memory, and less than
	// StalledAvailablePercent is available.
	StalledPercent          float64 `json:"stalledPercent"`
	StalledAvailablePercent float64 `json:"stalledAvailablePercent"`
	// CriticalStalledPercent: a sample is critical when all tasks waited for this
	// share of the last 10 s and available memory is below the first threshold.
	CriticalStalledPercent float64 `json:"criticalStalledPercent"`
	// ClearFactor (1 to 10): a sample is good again only above ClearFactor times
	// the threshold.
	ClearFactor float64 `json:"clearFactor"`
}

// defaultMemory has the kubelet's memory.available as its floor.
func defaultMemory() Section {
	return &Memory{
		Sampling:         DefaultSampling(4*time.Second, 2, 3),
		AvailablePercent: 5,
		AvailableBytes:   resource.MustParse("100Mi"),

		StalledPercent:          15,
		StalledAvailablePercent: 15,
		CriticalStalledPercent:  40,

		ClearFactor: 1.5,
	}
}

// Thresholds returns what the probe judges by.
func (m *Memory) Thresholds() memory.Thresholds {
	return memory.Thresholds{
		AvailablePercent:        m.AvailablePercent,
		AvailableBytes:          byteCount(m.AvailableBytes),
		StalledPercent:          m.StalledPercent,
		StalledAvailablePercent: m.StalledAvailablePercent,
		CriticalStalledPercent:  m.CriticalStalledPercent,
		ClearFactor:             m.ClearFactor,
	}
}

func byteCount(q resource.Quantity) uint64 { return uint64(max(0, q.Value())) }

// Validate returns every impossible value.
func (m *Memory) Validate(at *field.Path) field.ErrorList {
	return clearFactor(m.ClearFactor, at.Child("clearFactor"), m.AvailablePercent)
}

// Disk is the section of DiskPressure.
type Disk struct {
	Sampling

	// Paths name the file systems to watch, by any path on them. Paths that do
	// not exist are skipped, and named in the message. Several paths on one device count once.
	Paths []string `json:"paths"`
	// AvailablePercent and InodesPercent (0 to 100, 0: no threshold): Degraded
	// when less of the space, or of the inodes, is free.
	AvailablePercent float64 `json:"availablePercent"`
	InodesPercent    float64 `json:"inodesPercent"`
	// BlockedAfter (0 to 1h): Degraded when a path, or a write, has given no answer
	// for this time. Until then it is Unknown. 0: it stays Unknown.
	BlockedAfter decide.Duration `json:"blockedAfter"`
	WriteProbe   WriteProbe      `json:"writeProbe"`
	// ClearFactor (1 to 10): a sample is good again only above ClearFactor times
	// the threshold.
	ClearFactor float64 `json:"clearFactor"`
}

// WriteProbe configures the small write that tells whether a file system can be
// written at all.
type WriteProbe struct {
	// Directory takes a file of 4 KiB for a moment. Empty: no writes.
	Directory string `json:"directory"`
	// Interval (1s to 1h) is the time between two successful writes.
	Interval decide.Duration `json:"interval"`
	// SlowAfter (0 to 4s): Degraded when no write has been faster for a minute.
	// 0: a write may take as long as it likes.
	SlowAfter decide.Duration `json:"slowAfter"`
}

// defaultDisk has the thresholds of the kubelet's nodefs.available and
// nodefs.inodesFree.
func defaultDisk() Section {
	return &Disk{
		Sampling:         DefaultSampling(4*time.Second, 2, 3),
		Paths:            []string{"/", "/var/lib/kubelet", "/var/lib/containerd"},
		AvailablePercent: 10,
		InodesPercent:    5,
		BlockedAfter:     seconds(30),
		WriteProbe:       WriteProbe{Interval: seconds(30), SlowAfter: seconds(2)},
		ClearFactor:      1.5,
	}
}

// diskFaults are the reasons of a file system that is broken or does not answer.
func diskFaults() []string {
	return []string{"FileSystemReadOnly", "FileSystemShutDown", "FileSystemFailed", "FileSystemBlocked", "WriteFailed", "WriteBlocked"}
}

// Thresholds returns what the probe judges by.
func (d *Disk) Thresholds() disk.Thresholds {
	return disk.Thresholds{
		AvailablePercent: d.AvailablePercent,
		InodesPercent:    d.InodesPercent,
		BlockedAfter:     d.BlockedAfter.Duration,
		ClearFactor:      d.ClearFactor,
	}
}

// Write returns where the probe writes, and how long that may take.
func (d *Disk) Write() disk.Write {
	return disk.Write{
		Directory: d.WriteProbe.Directory,
		Interval:  d.WriteProbe.Interval.Duration,
		Slow:      d.WriteProbe.SlowAfter.Duration,
	}
}

// Validate returns every impossible value.
func (d *Disk) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(d.Paths) == 0 {
		errs = append(errs, field.Required(at.Child("paths"), "at least one absolute path"))
	}
	if len(d.Paths) > maxPaths {
		return field.ErrorList{field.TooMany(at.Child("paths"), len(d.Paths), maxPaths)}
	}
	for i, p := range d.Paths {
		errs = append(errs, absolute(p, at.Child("paths").Index(i))...)
		if slices.Contains(d.Paths[:i], p) {
			errs = append(errs, field.Duplicate(at.Child("paths").Index(i), p))
		}
	}
	if directory := d.WriteProbe.Directory; directory != "" {
		errs = append(errs, absolute(directory, at.Child("writeProbe", "directory"))...)
	}
	return append(errs, clearFactor(d.ClearFactor, at.Child("clearFactor"), max(d.AvailablePercent, d.InodesPercent))...)
}

// PID is the section of PIDPressure. Its ClearFactor is 1 to 10.
type PID struct {
	Sampling
	pid.Thresholds
}

func defaultPID() Section {
	return &PID{DefaultSampling(4*time.Second, 2, 3), pid.Thresholds{UsedPercent: 85, CriticalUsedPercent: 95, ClearFactor: 1.5}}
}

// Validate returns every impossible value.
func (p *PID) Validate(at *field.Path) field.ErrorList {
	return clearFactor(p.ClearFactor, at.Child("clearFactor"), 100-p.UsedPercent)
}

// Network is the section of NetworkUnavailable.
type Network struct {
	Sampling

	// DisabledClasses are kinds of checks that are not made.
	DisabledClasses []verdict.Class `json:"disabledClasses"`
}

func defaultNetwork() Section {
	return &Network{Sampling: DefaultSampling(5*time.Second, 3, 5), DisabledClasses: []verdict.Class{}}
}

// networkFaults are the reasons of a host that is cut off, or whose own part of the network
// fails, as its peers prove.
func networkFaults() []string {
	return []string{"RouteLost", "ConntrackDrops", "PodsUnreachable", "DNSUnreachable", "NodeDaemonFails", "LargePacketsLost", "CutOff"}
}

// MinInterval is 1 s: whoever sends a burst of probes would be a part of the
// trouble.
func (*Network) MinInterval() time.Duration { return time.Second }

// FollowUp is 1 s, for the same reason.
func (*Network) FollowUp() time.Duration { return time.Second }

// Validate returns every impossible value.
func (n *Network) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	classes := verdict.Classes()
	if len(n.DisabledClasses) > len(classes) {
		return field.ErrorList{field.TooMany(at.Child("disabledClasses"), len(n.DisabledClasses), len(classes))}
	}
	for i, class := range n.DisabledClasses {
		at := at.Child("disabledClasses").Index(i)
		if !slices.Contains(classes, class) {
			errs = append(errs, field.NotSupported(at, class, classes))
		}
		if slices.Contains(n.DisabledClasses[:i], class) {
			errs = append(errs, field.Duplicate(at, class))
		}
	}
	return errs
}
