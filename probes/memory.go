package probes

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/prometheus/procfs"
	"github.com/shirou/gopsutil/v3/common"
	"github.com/shirou/gopsutil/v3/mem"
)

// MemoryThresholds say when memory is scarce. The higher of the two
// thresholds counts.
//
// The percentage is of MemAvailable + AnonPages: of what programs have and
// could have. Unlike MemTotal it does not hold what the kernel or huge pages
// have taken, so that the same percentage means the same on every host.
type MemoryThresholds struct {
	// AvailablePercent is the share of available memory, in percent (0 to
	// 100), below which the host is Degraded. 0: no such threshold.
	AvailablePercent float64
	// AvailableBytes is the available memory, in bytes, below which the host is
	// Degraded. 0: no such threshold. It is taken as it is on any host: one with
	// less memory than this is always Degraded.
	AvailableBytes uint64
	// ClearFactor times the threshold must be available before memory counts
	// as plentiful again. 1 or more; less counts as 1.
	ClearFactor float64
}

// Memory watches a host's available memory. It knows OK and Degraded, and is
// never certain from one look: page cache comes and goes.
type Memory struct {
	host       Host
	thresholds MemoryThresholds
}

var _ Probe = (*Memory)(nil)

// NewMemory returns the probe of the host's memory; it reads h.Proc/meminfo.
func NewMemory(h Host, t MemoryThresholds) *Memory { return &Memory{host: h, thresholds: t} }

// Condition is MemoryPressure.
func (*Memory) Condition() Condition { return MemoryPressure }

// Wake is nil: memory is looked at by period only.
func (*Memory) Wake() <-chan struct{} { return nil }

// Observe reads meminfo and judges it.
func (m *Memory) Observe(ctx context.Context) Observation {
	sample, err := readMemory(ctx, m.host.Proc)
	if err != nil {
		return unknownBecause(MemoryPressure, err)
	}
	return m.thresholds.judge(sample)
}

// memSample is what one look at meminfo found, in bytes.
type memSample struct {
	available uint64 // MemAvailable
	anon      uint64 // AnonPages: what programs hold that has no file behind it
}

// judge says what a sample means. The sample is one that readMemory let pass.
func (t MemoryThresholds) judge(s memSample) Observation {
	available, whole := float64(s.available), float64(s.available)+float64(s.anon)
	threshold, thresholdText := whole*t.AvailablePercent/100, percentText(t.AvailablePercent)
	if atLeast := float64(t.AvailableBytes); atLeast > threshold {
		threshold, thresholdText = atLeast, bytesText(atLeast)
	}
	message := "available " + bytesText(available) + " of " + bytesText(whole) +
		" (" + shareText(available, whole) + "), threshold " + thresholdText
	return scarce(available, threshold, t.ClearFactor).observe(MemoryPressure, "Memory", message)
}

// readMemory reads <proc>/meminfo (Documentation/filesystems/proc.rst).
//
// The amount comes from gopsutil, which tells no trouble: without a meminfo it
// gives zeros and no error, and without a MemAvailable line an estimate of its
// own in its place. Nor does its v3 know AnonPages. So procfs reads the file
// first, and only a file that it finds whole is believed.
func readMemory(ctx context.Context, proc string) (memSample, error) {
	total, anon, err := verifyMeminfo(proc)
	if err != nil {
		return memSample{}, err
	}
	ctx = context.WithValue(ctx, common.EnvKey, common.EnvMap{common.HostProcEnvKey: proc})
	vm, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		return memSample{}, because("MeminfoGarbled", "reading meminfo under %s: %w", proc, err)
	}
	sample, err := believe(vm, total, anon)
	if err != nil {
		return memSample{}, because("MeminfoGarbled", "reading meminfo under %s: %w", proc, err)
	}
	return sample, nil
}

// believe takes what gopsutil read for a sample when it fits the MemTotal and
// AnonPages, in bytes, that were read just before.
func believe(vm *mem.VirtualMemoryStat, total, anon uint64) (memSample, error) {
	switch {
	case vm.Total != total:
		return memSample{}, fmt.Errorf("two reads in a row say %d and %d bytes of memory", total, vm.Total)
	case total == 0:
		return memSample{}, errors.New("a MemTotal of 0 cannot be")
	case vm.Available > total:
		return memSample{}, errors.New("MemAvailable is more than MemTotal")
	case anon > total:
		return memSample{}, errors.New("AnonPages is more than MemTotal")
	case vm.Available == 0 && anon == 0:
		return memSample{}, errors.New("MemAvailable and AnonPages cannot both be 0")
	}
	return memSample{available: vm.Available, anon: anon}, nil
}

// verifyMeminfo reads meminfo with procfs, which, unlike gopsutil, tells a
// missing line from a zero, and returns MemTotal and AnonPages in bytes.
func verifyMeminfo(proc string) (total, anon uint64, err error) {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return 0, 0, because("MeminfoUnreadable", "reading meminfo: %w", err)
	}
	info, err := fs.Meminfo()
	if errors.Is(err, procfs.ErrFileParse) {
		return 0, 0, because("MeminfoGarbled", "reading meminfo under %s: %w", proc, err)
	}
	if err != nil {
		return 0, 0, because("MeminfoUnreadable", "reading meminfo: %w", err)
	}
	for _, line := range []struct {
		name      string
		kB, bytes *uint64
	}{
		{"MemTotal", info.MemTotal, info.MemTotalBytes},
		{"MemAvailable", info.MemAvailable, info.MemAvailableBytes},
		{"AnonPages", info.AnonPages, info.AnonPagesBytes},
	} {
		if line.kB == nil {
			return 0, 0, because("MeminfoIncomplete", "meminfo under %s has no line %s", proc, line.name)
		}
		// A line cut off within its number has lost its unit: procfs then takes
		// the number for bytes. The bound keeps the multiplication from wrapping.
		if *line.kB > math.MaxUint64/1024 || *line.bytes != 1024**line.kB {
			return 0, 0, because("MeminfoGarbled", "meminfo under %s: %s is %d without the unit kB, or too large",
				proc, line.name, *line.kB)
		}
	}
	return *info.MemTotalBytes, *info.AnonPagesBytes, nil
}
