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

// readSample reads all that judge needs. A file that a kernel may lack is not
// used where it is missing. A file that is there and cannot be read or understood
// is an error: a guess about a part would be a guess about the whole.
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
	// Some of what the cache takes besides its data is in MemAvailable already.
	s.arc = min(cache, total-s.available)
	s.available += s.arc
	if s.freeSwap, err = readFreeSwap(h); err != nil {
		return sample{}, err
	}
	// Last, because the caller takes the time next, and stalls are a share of it.
	s.stalls, s.measured, err = pressure.Read(h, "memory")
	return s, err
}

// readMeminfo reads available and anonymous memory and MemTotal from
// <proc>/meminfo (Documentation/filesystems/proc.rst).
//
// Available memory comes from gopsutil, which hides trouble: without a meminfo it
// returns zeros and no error, and without a line MemAvailable it returns an
// estimate of its own. Its v3 does not know AnonPages either. So procfs reads the
// file first, and gopsutil is believed only where procfs found the file whole.
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

// believe returns what gopsutil read, if it fits the MemTotal and AnonPages, in
// bytes, that procfs read just before.
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

// verifyMeminfo reads MemTotal and AnonPages, in bytes, with procfs, which unlike
// gopsutil tells a missing line from a zero.
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
		// A line that is cut off within its number has lost its unit, and procfs
		// takes the number for bytes. The bound keeps the product from wrapping.
		if *line.kB > math.MaxUint64/1024 || *line.bytes != 1024**line.kB {
			return 0, 0, probes.Because("MeminfoGarbled", "meminfo under %s: %s is %d without the unit kB, or too large",
				proc, line.name, *line.kB)
		}
	}
	return *info.MemTotalBytes, *info.AnonPagesBytes, nil
}
