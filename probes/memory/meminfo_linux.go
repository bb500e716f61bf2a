package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
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

// readMeminfo reads <proc>/meminfo by gopsutil, which hides errors: without a meminfo it returns
// zeros and no error, and for a truncated one it returns its own estimate of MemAvailable.
// VmallocTotal follows behind MemAvailable on every kernel (fs/proc/meminfo.c), so a text that has
// it has both. Before Linux 3.14, which had no MemAvailable, gopsutil's estimate is that of the
// kernel since.
func readMeminfo(ctx context.Context, h probes.Host) (meminfo, error) {
	ctx = context.WithValue(ctx, common.EnvKey, common.EnvMap{common.HostProcEnvKey: h.Proc})
	vm, err := mem.VirtualMemoryWithContext(ctx)
	switch {
	case err != nil:
		return meminfo{}, probes.Because("MeminfoGarbled", "reading meminfo under %s: %w", h.Proc, err)
	case vm.Total == 0:
		return meminfo{}, probes.Because("MeminfoUnreadable", "no MemTotal can be read from meminfo under %s", h.Proc)
	case vm.VmallocTotal == 0:
		return meminfo{}, probes.Because("MeminfoIncomplete", "meminfo under %s ends before VmallocTotal", h.Proc)
	}
	m := meminfo{total: vm.Total, available: vm.Available, hugePages: readHugePages(h, vm)}
	if err := m.check(vm.Active); err != nil {
		return meminfo{}, probes.Because("MeminfoGarbled", "meminfo under %s: %w", h.Proc, err)
	}
	return m, nil
}

// check refuses numbers that cannot be true together. Active memory is never 0 on a host
// that runs.
func (m meminfo) check(active uint64) error {
	const most = 1 << 60 // sums of amounts up to it do not wrap
	switch {
	case m.total > most:
		return fmt.Errorf("a MemTotal of %d bytes cannot be", m.total)
	case m.available > m.total:
		return errors.New("MemAvailable is more than MemTotal")
	case m.hugePages > m.total:
		return errors.New("more huge pages than MemTotal")
	case m.available == 0 && active == 0:
		return errors.New("MemAvailable and Active cannot both be 0")
	}
	return nil
}

// readHugePages returns the memory in huge pages, in bytes. The kernel lists all sizes
// in sysfs (Documentation/admin-guide/mm/hugetlbpage.rst), and in meminfo, as gopsutil
// reads it, only the default size. Where the two cannot both be of this host, as in a
// container whose meminfo is its own (LXCFS), meminfo is believed.
func readHugePages(h probes.Host, vm *mem.VirtualMemoryStat) uint64 {
	var pages, all uint64
	if vm.HugePageSize > 0 && vm.HugePagesTotal <= vm.Total/vm.HugePageSize {
		pages = vm.HugePagesTotal * vm.HugePageSize
	} else if vm.HugePagesTotal > 0 {
		return vm.Total + 1 // check refuses it
	}
	folder := filepath.Join(h.Sys, "kernel", "mm", "hugepages")
	sizes, _ := os.ReadDir(folder) // there are none where the kernel has no huge pages
	for _, size := range sizes {
		kB, isSize := strings.CutPrefix(strings.TrimSuffix(size.Name(), "kB"), "hugepages-")
		each, err := strconv.ParseUint(kB, 10, 40)
		text, errRead := hostfile.Read(filepath.Join(folder, size.Name(), "nr_hugepages"))
		count, errCount := strconv.ParseUint(strings.TrimSuffix(text, "\n"), 10, 64)
		if !isSize || errors.Join(err, errRead, errCount) != nil || each == 0 || count > vm.Total/(each<<10) {
			return pages
		}
		all += count * each << 10
	}
	if all > vm.Total {
		return pages
	}
	return max(pages, all)
}
