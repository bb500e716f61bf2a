package memory

import (
	"flag"
	"fmt"
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/trend"
	"github.com/taintlet/taintlet/test/probetest"
)

var update = flag.Bool("update", false, "write what the probe says into testdata: hosts.txt of each recorded host, messages.golden of each reason")

func TestHosts(t *testing.T) {
	t.Parallel()
	probetest.Hosts(t, *update, func(_ string, h probes.Host) []string {
		p := New(h, allMemory)
		swapText := ""
		if swap, err := readSwap(h); err != nil {
			swapText = err.Error()
		} else {
			swapText = trend.BytesText(float64(swap.free))
		}
		return []string{
			probetest.Text(probetest.Observe(t, p)),
			fmt.Sprintf("free swap outside of memory: %s", swapText),
			probetest.Woken(p),
		}
	})
}

func TestEdgesTouchTheirConditionAlone(t *testing.T) {
	t.Parallel()
	probetest.Edges(t, func(h probes.Host) probes.Observation { return New(h, allMemory).Observe(t.Context()) },
		map[string]string{
			"proc/meminfo":                "MeminfoGarbled",
			"proc/swaps":                  "SwapsGarbled",
			"proc/pressure/memory":        "PressureGarbled",
			"proc/spl/kstat/zfs/arcstats": "ARCStatsGarbled",
			"proc/vmstat":                 "VMStatGarbled",

			"sys/fs/cgroup/kubepods.slice/memory.max":     "PodsMemoryGarbled",
			"sys/fs/cgroup/kubepods.slice/memory.current": "PodsMemoryGarbled",
			"sys/fs/cgroup/kubepods.slice/memory.stat":    "PodsMemoryGarbled",
		},
		// The number is one that a kernel may write, or what is wrong does not
		// matter.
		map[string]probes.Observation{
			"edges-zero/proc/swaps":                  {Level: probes.OK, Reason: "MemorySufficient"},
			"edges-zero/proc/pressure/memory":        {Level: probes.OK, Reason: "MemorySufficient"},
			"edges-zero/proc/spl/kstat/zfs/arcstats": {Level: probes.OK, Reason: "MemorySufficient"},
			"edges-zero/proc/vmstat":                 {Level: probes.OK, Reason: "MemorySufficient"},
			"edges-2^63/proc/vmstat":                 {Level: probes.OK, Reason: "MemorySufficient"},
			// Pods that use nothing, and a limit that is none.
			"edges-zero/sys/fs/cgroup/kubepods.slice/memory.current": {Level: probes.OK, Reason: "MemorySufficient"},
			"edges-zero/sys/fs/cgroup/kubepods.slice/memory.stat":    {Level: probes.OK, Reason: "MemorySufficient"},
			"edges-2^63/sys/fs/cgroup/kubepods.slice/memory.max":     {Level: probes.OK, Reason: "MemorySufficient"},
			"edges-2^63/sys/fs/cgroup/kubepods.slice/memory.stat":    {Level: probes.OK, Reason: "MemorySufficient"},
			"edges-2^63/sys/fs/cgroup/kubepods.slice/memory.current": {Level: probes.Degraded, Reason: "AllocatableMemoryLow"},
			// The cache is no larger than what it keeps: nothing to give back.
			"edges-2^63/proc/spl/kstat/zfs/arcstats": {Level: probes.OK, Reason: "MemorySufficient"},
		})
}
