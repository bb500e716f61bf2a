package memory

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/taintlet/taintlet/probes/hostfile"
)

// pagesPerReclaim is how many pages a task scans at least when it reclaims
// (SWAP_CLUSTER_MAX in include/linux/swap.h). As many of kswapd's are one reclaim.
const pagesPerReclaim = 32

// parseReclaims returns how often the host itself reclaimed, from the text of <proc>/vmstat: it adds
// up allocstall_* and pgscan_kswapd. The lines are a name and a number. Kernels may have one line for
// each zone of memory, and none without counters of events.
//
// A control group at its own limit stalls like a full host, and PSI of the host
// counts both. Of the counters in vmstat, allocstall_* tells them apart:
// do_try_to_free_pages in mm/vmscan.c counts it unless cgroup_reclaim. Measured on
// Linux 6.18 with control groups v1. The group had two processes that read 200 MiB under
// a limit of 64 MiB for 5 s. The host had 400 MiB available of 24 GiB, and four readers:
//
//	                        group at its limit  full host, each 0.5 s
//	some, full              31 %, 15 %          27 to 74 %, 8 to 29 %
//	allocstall_*            0                   57 to 2447
//	pgscan_direct           0                   about 35,000
//	pgscan_file, refaults   9.6 and 1.7 million about 150,000 and 200,000
//
// memory.max and memory.high of control groups v2 reclaim by the same functions.
// pgscan_direct is not used, because later kernels count reclaim of control
// groups in it too.
//
// Where kswapd keeps up, no task has to reclaim, and tasks wait for the pages that kswapd
// took from them. On Linux 6.1 with 28 MiB of 2.78 GiB available, kswapd had scanned
// 105,000 pages, and allocstall_* was 2. kswapd never reclaims for the limit of a group.
func parseReclaims(text string) (r reclaims, err error) {
	if text == "" {
		return reclaims{}, errors.New("empty")
	}
	if err := hostfile.CheckWhole(text); err != nil {
		return reclaims{}, err
	}
	var scanned uint64
	for line := range strings.Lines(text) {
		isScan := strings.HasPrefix(line, "pgscan_kswapd")
		if !isScan && !strings.HasPrefix(line, "allocstall") {
			continue
		}
		name, digits, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		count, err := strconv.ParseUint(digits, 10, 64)
		switch {
		case err != nil:
			return reclaims{}, fmt.Errorf("%s is no number: %w", name, err)
		case isScan:
			scanned += count
		default:
			r.count += count // it may wrap
		}
		r.counted = true
	}
	r.count += scanned / pagesPerReclaim
	return r, nil
}
