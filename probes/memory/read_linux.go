package memory

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/hostfile"
	"github.com/taintlet/taintlet/probes/pressure"
)

// readSample reads all that judge needs, after a sample before it. A file that a
// kernel may lack is not used where it is missing. A file that is there and cannot
// be read or understood is an error: a guess about a part would be a guess about
// the whole.
func readSample(ctx context.Context, h probes.Host, prev sample) (sample, error) {
	info, err := readMeminfo(ctx, h)
	if err != nil {
		return sample{}, err
	}
	cache, err := readEvictableARC(h)
	if err != nil {
		return sample{}, err
	}
	if cache > info.total {
		return sample{}, probes.Because("ARCStatsGarbled", "arcstats under %s: the ZFS cache is larger than the memory", h.Proc)
	}
	var s sample
	// Huge pages that are made or given up just now can be in MemAvailable, too.
	notAvailable := info.ordinary() - min(info.ordinary(), info.available)
	// A part of the cache beside its data is in MemAvailable already.
	s.arc = min(cache, notAvailable)
	s.available, s.held = info.available+s.arc, notAvailable-s.arc
	// The time is taken soon after, and stalls are a share of it.
	s.stalls, s.measured, err = pressure.Read(h, "memory")
	if err != nil {
		return sample{}, err
	}
	s.reclaims, err = s.reclaimsAfter(prev, h)
	return s, err
}

// reclaimsAfter reads the reclaims where tasks have waited since the sample before.
// Reclaim is such a wait, and vmstat costs more to read than all the rest.
func (s sample) reclaimsAfter(prev sample, h probes.Host) (reclaims, error) {
	switch {
	case !s.measured:
		return reclaims{}, nil
	case prev.measured && s.stalls == prev.stalls:
		return prev.reclaims, nil
	}
	return readReclaims(h)
}

// readEvictableARC returns what ZFS would give back of its cache (ARC), in
// bytes. It is 0 where there is no ZFS.
//
// MemAvailable leaves this cache out (openzfs/zfs#10255), so that a healthy file
// server would seem full. Under pressure the cache shrinks like the page cache,
// but not below c_min.
func readEvictableARC(h probes.Host) (evictable uint64, err error) {
	path := filepath.Join(h.Proc, "spl", "kstat", "zfs", "arcstats")
	evictable, _, err = hostfile.ParseOptional(path, "ARCStats", "the size of the ZFS cache", parseEvictableARC)
	return evictable, err
}

// parseEvictableARC returns size - c_min, or 0 if that is negative, from the text
// of arcstats. After two lines of header each line has name, type and value.
func parseEvictableARC(text string) (uint64, error) {
	if err := hostfile.CheckWhole(text); err != nil {
		return 0, err
	}
	size, err := kstat(text, "size")
	if err != nil {
		return 0, err
	}
	least, err := kstat(text, "c_min")
	if err != nil {
		return 0, err
	}
	return size - min(size, least), nil
}

// kstat returns one value of a table of the Solaris porting layer. Its type is 4,
// an unsigned number of 64 bits (KSTAT_DATA_UINT64).
func kstat(text, name string) (uint64, error) {
	_, rest, found := strings.Cut(text, "\n"+name+" ")
	line, _, _ := strings.Cut(rest, "\n")
	fields := strings.Fields(line)
	if !found || len(fields) != 2 || fields[0] != "4" {
		return 0, fmt.Errorf("no line %s with type 4 and a value", name)
	}
	value, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is no number of bytes: %w", name, err)
	}
	return value, nil
}
