package memory

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
)

// swap is the swap that lies outside of memory, in bytes.
type swap struct{ size, free uint64 }

// readSwap reads the swap that lies outside of memory. There is none where the
// kernel has no swap.
//
// gopsutil takes swap from sysinfo(2), which reports on the reader's own host,
// whatever h.Proc is. SwapFree in meminfo includes zram.
func readSwap(h probes.Host) (swap, error) {
	s, _, err := hostfile.ParseOptional(filepath.Join(h.Proc, "swaps"), "Swaps", "swap", parseSwap)
	return s, err
}

// parseSwap adds up the swap from the text of /proc/swaps
// (swap_show in mm/swapfile.c), which has amounts in KiB:
//
//	Filename    Type        Size     Used  Priority
//	/dev/sda2   partition   8388604  1024  -2
//
// Swap on zram does not count, because it lies in memory itself. A page that goes
// there frees only what its compression saves, and MemAvailable shows that as it
// happens. The kernel may append text to a name, such as \040(deleted) after
// zram's number.
func parseSwap(text string) (s swap, err error) {
	header, devices, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(header, "Filename") {
		return swap{}, errors.New("no header")
	}
	if err := hostfile.CheckWhole(text); err != nil {
		return swap{}, err
	}
	for line := range strings.Lines(devices) {
		fields := strings.Fields(line)
		if len(fields) != 5 {
			return swap{}, fmt.Errorf("%d fields instead of 5 in %s", len(fields), hostfile.Excerpt(strings.TrimSuffix(line, "\n")))
		}
		// 48 bits keep the sum over all devices (at most 32) from wrapping.
		size, err := strconv.ParseUint(fields[2], 10, 48)
		if err != nil {
			return swap{}, fmt.Errorf("the size is no number of KiB: %w", err)
		}
		used, err := strconv.ParseUint(fields[3], 10, 48)
		if err != nil {
			return swap{}, fmt.Errorf("the used amount is no number of KiB: %w", err)
		}
		if used > size {
			return swap{}, fmt.Errorf("%d KiB used of %d", used, size)
		}
		if !strings.HasPrefix(filepath.Base(fields[0]), "zram") {
			s.size, s.free = s.size+1024*size, s.free+1024*(size-used)
		}
	}
	return s, nil
}
