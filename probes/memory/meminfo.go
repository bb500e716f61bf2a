package memory

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v3/common"
	"github.com/shirou/gopsutil/v3/mem"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// meminfo is what <proc>/meminfo (Documentation/filesystems/proc.rst) says of
// the memory, in bytes.
type meminfo struct {
	total, available uint64
	anon             uint64 // AnonPages, mlocked ones among them
	shmem            uint64 // tmpfs, memfd, System V, shared and anonymous mmap; mlocked ones among them
	unevictable      uint64 // mlocked pages of every kind, and ramfs
	pageCache        uint64 // Cached and Buffers: files, and shmem with them
	fileLRU          uint64 // the part of the page cache that may be reclaimed
}

// held returns what programs hold and the kernel cannot get back without swap:
// AnonPages, Shmem, and files that are kept in memory (mlock, ramfs).
//
// No page is in two of the three. None is in MemAvailable, which is free memory,
// the file LRU and reclaimable slabs (si_mem_available in the kernel), but for
// anonymous pages that their program has given up (MADV_FREE). Shmem lies on the
// LRU of anonymous memory, and what is mlocked on neither.
// Unevictable and Mlocked themselves cannot be added, because they count anonymous
// and shared memory once more. So files that are kept are the page cache without
// shmem and without the file LRU. Pages on their way to a LRU are in that
// difference too, and Unevictable keeps them from counting.
func (m meminfo) held() uint64 {
	files := m.pageCache - min(m.pageCache, m.shmem+m.fileLRU)
	return m.anon + m.shmem + min(files, m.unevictable)
}

// readMeminfo reads <proc>/meminfo.
//
// Available memory comes from gopsutil, which hides trouble: without a meminfo it
// returns zeros and no error, and without a line MemAvailable it returns an
// estimate of its own. Its v3 does not know AnonPages either. So the lines that
// count are read here first, and gopsutil is believed only where all are there.
func readMeminfo(ctx context.Context, proc string) (meminfo, error) {
	path := filepath.Join(proc, "meminfo")
	text, err := hostfile.Read(path)
	if err != nil {
		return meminfo{}, probes.Because("MeminfoUnreadable", "reading meminfo: %w", err)
	}
	m, err := parseMeminfo(text)
	if missing, ok := errors.AsType[missingLine](err); ok {
		return meminfo{}, probes.Because("MeminfoIncomplete", "meminfo under %s has %w", proc, missing)
	}
	if err != nil {
		return meminfo{}, probes.Because("MeminfoGarbled", "meminfo under %s: %w", proc, err)
	}
	ctx = context.WithValue(ctx, common.EnvKey, common.EnvMap{common.HostProcEnvKey: proc})
	vm, err := mem.VirtualMemoryWithContext(ctx)
	if err == nil {
		m, err = m.believe(vm)
	}
	if err != nil {
		return meminfo{}, probes.Because("MeminfoGarbled", "reading meminfo under %s: %w", proc, err)
	}
	return m, nil
}

// believe returns m with the available memory that gopsutil read, if all that was
// read fits together.
func (m meminfo) believe(vm *mem.VirtualMemoryStat) (meminfo, error) {
	m.available = vm.Available
	switch {
	case vm.Total != m.total:
		return meminfo{}, fmt.Errorf("two reads in a row say %d and %d bytes of memory", m.total, vm.Total)
	case m.total == 0:
		return meminfo{}, errors.New("a MemTotal of 0 cannot be")
	case m.available > m.total:
		return meminfo{}, errors.New("MemAvailable is more than MemTotal")
	case m.anon > m.total:
		return meminfo{}, errors.New("AnonPages is more than MemTotal")
	case m.shmem > m.total:
		return meminfo{}, errors.New("more Shmem than MemTotal")
	case m.available == 0 && m.anon == 0:
		return meminfo{}, errors.New("MemAvailable and AnonPages cannot both be 0")
	}
	return m, nil
}

// missingLine is the name of a line that meminfo must have and has not.
type missingLine string

func (m missingLine) Error() string { return "no line " + string(m) }

// parseMeminfo returns the lines of meminfo that count, which are such as
//
//	MemAvailable:    8192000 kB
//
// Kernels before Linux 2.6 put two tables before them, and some that look like
// Linux still do: lines with other names are passed over. MemTotal, MemAvailable
// and AnonPages must be there. A kernel that has no other line counts no such
// memory.
//
// The parser is ours because that of procfs refuses the tables, and takes a number
// that was cut off for the whole number.
func parseMeminfo(text string) (meminfo, error) {
	kB, err := parseMeminfoLines(text)
	if err != nil {
		return meminfo{}, err
	}
	for _, name := range []string{"MemTotal", "MemAvailable", "AnonPages"} {
		if _, ok := kB[name]; !ok {
			return meminfo{}, missingLine(name)
		}
	}
	bytes := func(names ...string) (sum uint64) {
		for _, name := range names {
			sum += 1024 * kB[name]
		}
		return sum
	}
	return meminfo{
		total: bytes("MemTotal"), available: bytes("MemAvailable"),
		anon: bytes("AnonPages"), shmem: bytes("Shmem"), unevictable: bytes("Unevictable"),
		pageCache: bytes("Cached", "Buffers"), fileLRU: bytes("Active(file)", "Inactive(file)"),
	}, nil
}

// parseMeminfoLines returns the values, in KiB, of the lines that count.
func parseMeminfoLines(text string) (map[string]uint64, error) {
	kB := make(map[string]uint64, 9)
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("no line of meminfo: %s", hostfile.Excerpt(line))
		}
		switch name {
		case "MemTotal", "MemAvailable", "AnonPages", "Shmem", "Unevictable", "Cached", "Buffers", "Active(file)", "Inactive(file)":
		default:
			continue
		}
		digits, isKB := strings.CutSuffix(strings.TrimSpace(value), " kB")
		if !isKB {
			return nil, fmt.Errorf("%s is %s without the unit kB", name, hostfile.Excerpt(strings.TrimSpace(value)))
		}
		// 50 bits keep the sums from wrapping.
		amount, err := strconv.ParseUint(digits, 10, 50)
		if err != nil {
			return nil, fmt.Errorf("%s is no number of kB: %w", name, err)
		}
		kB[name] = amount
	}
	return kB, nil
}
