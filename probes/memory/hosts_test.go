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
		}
	})
}

func TestEdgesTouchTheirConditionAlone(t *testing.T) {
	t.Parallel()
	// The number is one that a kernel may write, or what is wrong does not matter.
	understood := map[string]probes.Observation{
		"edges-zero/proc/meminfo":       {Level: probes.Unknown, Reason: "MeminfoUnreadable"},
		"edges-2^63/proc/meminfo":       {Level: probes.Unknown, Reason: "MeminfoUnreadable"}, // wraps to 0
		"edges-no-newline/proc/meminfo": {Level: probes.OK, Reason: "MemorySufficient"},       // the number that counts is whole
	}
	// What is told beside meminfo hides nothing.
	for _, edge := range []string{"zero", "2^63", "negative", "exponent", "no-newline"} {
		for _, path := range []string{"proc/pressure/memory", "proc/spl/kstat/zfs/arcstats", "proc/vmstat", "sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages"} {
			understood["edges-"+edge+"/"+path] = probes.Observation{Level: probes.OK, Reason: "MemorySufficient"}
		}
	}
	probetest.Edges(t, func(h probes.Host) probes.Observation { return New(h, allMemory).Observe(t.Context()) },
		map[string]string{"proc/meminfo": "MeminfoGarbled"}, understood)
}
