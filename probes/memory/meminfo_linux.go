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
	anon             uint64 // AnonPages
	hugePages        uint64 // huge pages of all sizes, in use or not
}

// ordinary returns the memory without huge pages, which nobody has who does not ask
// for them.
//
// All of it counts as memory that programs have or could have. The kernel's own memory
// counts as well, because the kernel uses it for them. Most of that is in some line of
// meminfo (SUnreclaim, PageTables, KernelStack, Zswap), and some is in none: zram, the
// buffers of sockets and pipes, the ZFS cache, the memory of drivers.
func (m meminfo) ordinary() uint64 { return m.total - m.hugePages }

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
	case m.hugePages > m.total:
		return meminfo{}, errors.New("more huge pages than MemTotal")
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
// Linux still do: lines with other names are passed over. VmallocTotal is there only
// to show that the text goes on behind the lines that every kernel has.
//
// The parser is ours because that of procfs refuses the tables, and takes a number
// that was cut off for the whole number.
func parseMeminfo(text string) (meminfo, error) {
	if err := hostfile.CheckWhole(text); err != nil {
		return meminfo{}, err
	}
	lines, err := parseMeminfoLines(text)
	if err != nil {
		return meminfo{}, err
	}
	for _, name := range []string{"MemTotal", "MemAvailable", "AnonPages", "VmallocTotal"} {
		if _, ok := lines[name]; !ok {
			return meminfo{}, missingLine(name)
		}
	}
	hugePages, err := hugePagesKB(lines)
	if err != nil {
		return meminfo{}, err
	}
	return meminfo{
		total: 1024 * lines["MemTotal"], available: 1024 * lines["MemAvailable"],
		anon: 1024 * lines["AnonPages"], hugePages: 1024 * hugePages,
	}, nil
}

// hugePagesKB returns the huge pages of all sizes, in KiB. Before Linux 4.15 meminfo
// had those of the default size only, and as a number of pages. There are none where
// the kernel knows none.
func hugePagesKB(lines map[string]uint64) (uint64, error) {
	pages, ok := lines["HugePages_Total"]
	if !ok {
		return 0, nil
	}
	size, ok := lines["Hugepagesize"]
	if !ok {
		return 0, missingLine("Hugepagesize")
	}
	if all, ok := lines["Hugetlb"]; ok {
		return all, nil
	}
	if size > 0 && pages > lines["MemTotal"]/size {
		return 0, fmt.Errorf("%d huge pages of %d kB are more than MemTotal", pages, size)
	}
	return pages * size, nil
}

// parseMeminfoLines returns the values of the lines that count, in KiB but for
// HugePages_Total, which is a number of pages.
func parseMeminfoLines(text string) (map[string]uint64, error) {
	values := make(map[string]uint64, 7)
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("no line of meminfo: %s", hostfile.Excerpt(line))
		}
		digits, isKB := strings.CutSuffix(strings.TrimSpace(value), " kB")
		switch name {
		case "MemTotal", "MemAvailable", "AnonPages", "Hugepagesize", "Hugetlb":
			if !isKB {
				return nil, fmt.Errorf("%s is %s without the unit kB", name, hostfile.Excerpt(digits))
			}
		case "HugePages_Total":
			if isKB {
				return nil, fmt.Errorf("%s is %s with the unit kB", name, hostfile.Excerpt(digits))
			}
		case "VmallocTotal": // that of a large address space may have more bits than count
			values[name] = 0
			continue
		default:
			continue
		}
		// 50 bits keep the sums from wrapping.
		amount, err := strconv.ParseUint(digits, 10, 50)
		if err != nil {
			return nil, fmt.Errorf("%s is no number: %w", name, err)
		}
		values[name] = amount
	}
	return values, nil
}
