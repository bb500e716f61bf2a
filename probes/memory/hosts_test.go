package memory

import (
	"flag"
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

var update = flag.Bool("update", false, "write what the probe says into testdata: hosts.txt of each recorded host, messages.golden of each reason")

func TestHosts(t *testing.T) {
	t.Parallel()
	probetest.Hosts(t, *update, func(_ string, h probes.Host) []string {
		p := New(h, allMemory)
		return []string{
			probetest.Text(probetest.Observe(t, p)),
			probetest.Woken(p),
		}
	})
}

func TestEdgesTouchTheirConditionAlone(t *testing.T) {
	t.Parallel()
	const hugePages = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"
	probetest.Edges(t, func(h probes.Host) probes.Observation { return New(h, allMemory).Observe(t.Context()) },
		map[string]string{
			"proc/meminfo":                "MeminfoGarbled",
			"proc/pressure/memory":        "PressureGarbled",
			"proc/spl/kstat/zfs/arcstats": "ARCStatsGarbled",
			"proc/vmstat":                 "VMStatGarbled",
		},
		// The number is one that a kernel may write, or what is wrong does not
		// matter.
		map[string]probes.Observation{
			"edges-zero/proc/meminfo":                {Level: probes.Unknown, Reason: "MeminfoUnreadable"},
			"edges-2^63/proc/meminfo":                {Level: probes.Unknown, Reason: "MeminfoUnreadable"}, // wraps to 0
			"edges-no-newline/proc/meminfo":          {Level: probes.OK, Reason: "MemorySufficient"},       // the number that counts is whole
			"edges-zero/proc/pressure/memory":        {Level: probes.OK, Reason: "MemorySufficient"},
			"edges-zero/proc/spl/kstat/zfs/arcstats": {Level: probes.OK, Reason: "MemorySufficient"},
			"edges-zero/proc/vmstat":                 {Level: probes.OK, Reason: "MemorySufficient"},
			"edges-2^63/proc/vmstat":                 {Level: probes.OK, Reason: "MemorySufficient"},
			// Huge pages that sysfs does not tell are those of meminfo: none.
			"edges-zero" + hugePages:     {Level: probes.OK, Reason: "MemorySufficient"},
			"edges-2^63" + hugePages:     {Level: probes.OK, Reason: "MemorySufficient"},
			"edges-negative" + hugePages: {Level: probes.OK, Reason: "MemorySufficient"},
			"edges-exponent" + hugePages: {Level: probes.OK, Reason: "MemorySufficient"},
			// The cache is no larger than what it keeps: nothing to give back.
			"edges-2^63/proc/spl/kstat/zfs/arcstats": {Level: probes.OK, Reason: "MemorySufficient"},
		})
}
