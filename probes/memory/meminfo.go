package memory

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/prometheus/procfs"
	"github.com/shirou/gopsutil/v3/common"
	"github.com/shirou/gopsutil/v3/mem"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/pressure"
)

// readSample reads all that judge needs. Where one of the files that are there
// cannot be read or understood, the rest says nothing either: a guess about a
// part would be a guess about the whole.
func readSample(ctx context.Context, h probes.Host) (sample, error) {
	s, total, err := readMeminfo(ctx, h.Proc)
	if err != nil {
		return sample{}, err
	}
	cache, err := readEvictableARC(h)
	if err != nil {
		return sample{}, err
	}
	if cache > total {
		return sample{}, probes.Because("ARCStatsGarbled", "arcstats under %s: the ZFS cache is larger than the memory", h.Proc)
	}
	// Some of what the cache needs besides its data is in MemAvailable already.
	s.arc = min(cache, total-s.available)
	s.available += s.arc
	if s.freeSwap, err = readFreeSwap(h); err != nil {
		return sample{}, err
	}
	// Last, because the time of the look is taken next.
	s.stalls, s.measured, err = pressure.Read(h, "memory")
	return s, err
}

// readMeminfo reads <proc>/meminfo (Documentation/filesystems/proc.rst), and
// MemTotal besides the sample.
//
// The amount comes from gopsutil, which tells no trouble: without a meminfo it
// gives zeros and no error, and without a MemAvailable line an estimate of its
// own in its place. Nor does its v3 know AnonPages. So procfs reads the file
// first, and only a file that it finds whole is believed.
func readMeminfo(ctx context.Context, proc string) (s sample, total uint64, err error) {
	total, anon, err := verifyMeminfo(proc)
	if err != nil {
		return sample{}, 0, err
	}
	ctx = context.WithValue(ctx, common.EnvKey, common.EnvMap{common.HostProcEnvKey: proc})
	vm, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		return sample{}, 0, probes.Because("MeminfoGarbled", "reading meminfo under %s: %w", proc, err)
	}
	if s, err = believe(vm, total, anon); err != nil {
		return sample{}, 0, probes.Because("MeminfoGarbled", "reading meminfo under %s: %w", proc, err)
	}
	return s, total, nil
}

// believe takes what gopsutil read for a sample when it fits the MemTotal and
// AnonPages, in bytes, that were read just before.
func believe(vm *mem.VirtualMemoryStat, total, anon uint64) (sample, error) {
	switch {
	case vm.Total != total:
		return sample{}, fmt.Errorf("two reads in a row say %d and %d bytes of memory", total, vm.Total)
	case total == 0:
		return sample{}, errors.New("a MemTotal of 0 cannot be")
	case vm.Available > total:
		return sample{}, errors.New("MemAvailable is more than MemTotal")
	case anon > total:
		return sample{}, errors.New("AnonPages is more than MemTotal")
	case vm.Available == 0 && anon == 0:
		return sample{}, errors.New("MemAvailable and AnonPages cannot both be 0")
	}
	return sample{available: vm.Available, anon: anon}, nil
}

// verifyMeminfo reads meminfo with procfs, which, unlike gopsutil, tells a
// missing line from a zero, and returns MemTotal and AnonPages in bytes.
func verifyMeminfo(proc string) (total, anon uint64, err error) {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return 0, 0, probes.Because("MeminfoUnreadable", "reading meminfo: %w", err)
	}
	info, err := fs.Meminfo()
	if errors.Is(err, procfs.ErrFileParse) {
		return 0, 0, probes.Because("MeminfoGarbled", "reading meminfo under %s: %w", proc, err)
	}
	if err != nil {
		return 0, 0, probes.Because("MeminfoUnreadable", "reading meminfo: %w", err)
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
			return 0, 0, probes.Because("MeminfoIncomplete", "meminfo under %s has no line %s", proc, line.name)
		}
		// A line cut off within its number has lost its unit: procfs then takes
		// the number for bytes. The bound keeps the multiplication from wrapping.
		if *line.kB > math.MaxUint64/1024 || *line.bytes != 1024**line.kB {
			return 0, 0, probes.Because("MeminfoGarbled", "meminfo under %s: %s is %d without the unit kB, or too large",
				proc, line.name, *line.kB)
		}
	}
	return *info.MemTotalBytes, *info.AnonPagesBytes, nil
}
