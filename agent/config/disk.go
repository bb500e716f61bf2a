package config

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/taintlet/taintlet/agent/decide"
	"github.com/taintlet/taintlet/probes/disk"
)

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
	errs = append(errs, percent(d.AvailablePercent, at.Child("availablePercent"))...)
	errs = append(errs, percent(d.InodesPercent, at.Child("inodesPercent"))...)
	errs = append(errs, between(d.BlockedAfter, 0, time.Hour, at.Child("blockedAfter"))...)
	errs = append(errs, d.WriteProbe.validate(at.Child("writeProbe"))...)
	return append(errs, clearFactor(d.ClearFactor, at.Child("clearFactor"), max(d.AvailablePercent, d.InodesPercent))...)
}

func (w WriteProbe) validate(at *field.Path) field.ErrorList {
	errs := between(w.Interval, time.Second, time.Hour, at.Child("interval"))
	errs = append(errs, between(w.SlowAfter, 0, maxSlowWrite, at.Child("slowAfter"))...)
	if w.Directory != "" {
		errs = append(errs, absolute(w.Directory, at.Child("directory"))...)
	}
	return errs
}
