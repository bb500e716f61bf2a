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

// readSample reads the input of judge. prev is the sample before. Only meminfo is required. Other
// files are skipped if they are missing. If one cannot be read or parsed, it is skipped and the
// sample says so, because it must not hide what meminfo shows.
func (p *Probe) readSample(ctx context.Context, prev sample) (s sample, err error) {
	info, err := readMeminfo(ctx, p.host)
	if err != nil {
		return s, err
	}
	// Huge pages that are made or given up just now can be in MemAvailable, too.
	notAvailable := info.ordinary() - min(info.ordinary(), info.available)
	if p.isOfKernel() {
		arcstats := filepath.Join(p.host.Proc, "spl", "kstat", "zfs", "arcstats")
		var cache uint64
		if cache, _, err = hostfile.ParseOptional(arcstats, parseEvictableARC); cache <= info.total {
			// A part of the cache beside its data is in MemAvailable already.
			s.arc = min(cache, notAvailable)
		}
	}
	s.available, s.held, s.unread = info.available+s.arc, notAvailable-s.arc, err
	// The time is taken soon after, and stalls are a share of it.
	s.stalls, s.measured, err = pressure.Read(p.host, "memory")
	if err == nil {
		s.reclaims, err = s.reclaimsAfter(prev, p.host)
	}
	if err != nil {
		s.measured, s.unread = false, err
	}
	return s, nil
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
	r, _, err := hostfile.ParseOptional(filepath.Join(h.Proc, "vmstat"), parseReclaims)
	return r, err
}

// parseEvictableARC returns what ZFS would give back of its cache (ARC) now, in bytes, from the text
// of arcstats. That is what can be evicted, and at most size - c_min (arc_evictable_memory in
// module/os/linux/zfs/arc_os.c). After two lines of header each line has name, type and value.
//
// MemAvailable does not include this cache (openzfs/zfs#10255), so a healthy file server would seem
// full. Under pressure the cache shrinks like the page cache, but not below c_min, and pinned
// buffers stay.
func parseEvictableARC(text string) (uint64, error) {
	if err := hostfile.CheckWhole(text); err != nil {
		return 0, err
	}
	names := [...]string{"size", "c_min", "mru_evictable_data", "mru_evictable_metadata", "mfu_evictable_data", "mfu_evictable_metadata"}
	var values [len(names)]uint64
	for i, name := range names {
		var err error
		if values[i], err = kstat(text, name); err != nil {
			return 0, err
		}
	}
	left := values[0] - min(values[0], values[1])
	var evictable uint64
	for _, list := range values[2:] {
		evictable += min(list, left-evictable)
	}
	return evictable, nil
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
