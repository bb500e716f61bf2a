package config

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/probes/network/verdict"
)

// Memory is the section of MemoryPressure. In all sections, a threshold of 0 is none.
type Memory struct {
	Sampling

	// AvailablePercent (of all memory but huge pages) and AvailableBytes: Degraded when
	// available memory is below the larger of the two.
	AvailablePercent float64           `json:"availablePercent" range:"0..100"`
	AvailableBytes   resource.Quantity `json:"availableBytes" range:"0..1Ei"` // more would not fit the sums that are made of it
	// EarlyPercent: an early taint is set when less is available.
	EarlyPercent float64 `json:"earlyPercent" range:"0..80"`
	// StalledPercent: Degraded when tasks waited for memory for this share of the last 2 s, as
	// far as the host reclaimed memory, and less than stalledAvailablePercent is available.
	StalledPercent float64 `json:"stalledPercent" range:"0..100"`
}

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
	// MountPoints are watched as well. The host is to have mounted a file system there: Degraded
	// where it has not.
	MountPoints []string `json:"mountPoints"`
	// Degraded when less of the space, or of the inodes, is free. EarlyPercent: an early taint is
	// set when less of the space is free.
	AvailablePercent float64 `json:"availablePercent" range:"0..100"`
	InodesPercent    float64 `json:"inodesPercent" range:"0..100"`
	EarlyPercent     float64 `json:"earlyPercent" range:"0..80"`
	// WriteProbe is the small write that tells whether a file system can be written at all.
	WriteProbe struct {
		// Directory takes a file of 4 KiB for a moment. Empty: no writes.
		Directory string `json:"directory"`
	} `json:"writeProbe"`
}

// Validate returns every impossible value.
func (d *Disk) Validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if directory := d.WriteProbe.Directory; directory != "" {
		errs = absolute(directory, at.Child("writeProbe", "directory"))
	}
	return slices.Concat(errs,
		entries(d.Paths, maxPaths, at.Child("paths"), absolute),
		entries(d.MountPoints, maxPaths, at.Child("mountPoints"), absolute),
		when(len(d.Paths) == 0, field.Required(at.Child("paths"), "at least one absolute path")),
		reachable(d.Debounce, at, "inodesPercent", d.InodesPercent, 0),
		reachable(d.Debounce, at, "availablePercent", d.AvailablePercent, d.EarlyPercent),
	)
}

// PID is the section of PIDPressure.
type PID struct {
	Sampling

	// UsedPercent is the share of the host's task limit from which on it is Degraded.
	UsedPercent float64 `json:"usedPercent" range:"0.001..100"`
	// EarlyPercent: an early taint is set from this used share on.
	EarlyPercent float64 `json:"earlyPercent" range:"0,20..99"`
}

// Validate returns every impossible value.
func (p *PID) Validate(at *field.Path) field.ErrorList {
	return reachable(p.Debounce, at, "usedPercent", 100-p.UsedPercent, 100-p.EarlyPercent)
}

// Network is the section of NetworkUnavailable.
type Network struct {
	Sampling

	// DisabledClasses are kinds of checks that are not made.
	DisabledClasses []verdict.Class `json:"disabledClasses"`
}

// Validate returns every impossible value.
func (n *Network) Validate(at *field.Path) field.ErrorList {
	classes := verdict.Classes()
	return entries(n.DisabledClasses, len(classes), at.Child("disabledClasses"), func(class verdict.Class, at *field.Path) field.ErrorList {
		return oneOf(class, at, classes...)
	})
}
