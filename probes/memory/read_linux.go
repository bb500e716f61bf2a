package memory

import (
	"context"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/cgroup"
	"github.com/taintlet/taintlet/probes/pressure"
)

// readSample reads all that judge needs, after a sample before it. A file that a
// kernel may lack is not used where it is missing. A file that is there and cannot
// be read or understood is an error: a guess about a part would be a guess about
// the whole.
func readSample(ctx context.Context, h probes.Host, pods *cgroup.Pods, prev sample) (sample, error) {
	info, err := readMeminfo(ctx, h.Proc)
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
	swap, err := readSwap(h)
	if err != nil {
		return sample{}, err
	}
	s := sample{freeSwap: swap.free, capacity: info.ordinary() + swap.size}
	// Huge pages that are made or given up just now can be in MemAvailable, too.
	notAvailable := info.ordinary() - min(info.ordinary(), info.available)
	// A part of the cache beside its data is in MemAvailable already.
	s.arc = min(cache, notAvailable)
	s.available, s.held = info.available+s.arc, notAvailable-s.arc
	if s.pods, err = readPods(pods, info.total); err != nil {
		return sample{}, err
	}
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
