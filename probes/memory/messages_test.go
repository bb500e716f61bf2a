package memory

import (
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/probetest"
)

func TestMessages(t *testing.T) { //nolint:paralleltest // it may write its file
	small := allMemory
	small.AvailablePercent, small.AvailableBytes = 5, 8*gib
	withARC := ofHost(30)
	withARC.arc = 2 * gib
	probe := func(h probes.Host) probes.Probe { return New(h, allMemory) }
	damaged := func(damage func(probes.Host)) probes.Observation {
		return probetest.SaidOf(t, probe, func(h probes.Host) {
			probetest.Write(t, h, "proc/pressure/memory", "some total=1\nfull total=1\n") // or vmstat is not read
			damage(h)
		})
	}
	unreadable := func(path string) probes.Observation {
		return damaged(func(h probes.Host) { probetest.Block(t, h, path) })
	}
	garbled := func(path, text string) probes.Observation {
		return damaged(func(h probes.Host) { probetest.Write(t, h, path, text) })
	}
	const zfs = "proc/spl/kstat/zfs/arcstats"
	whole := probetest.HealthyText(t, "proc/meminfo")
	probetest.Golden(t, *update,
		allMemory.judged(ofHost(50), 0, 0, 0), allMemory.alone(withARC), allMemory.judged(ofHost(6.4), 3, 0, 0),
		allMemory.judged(ofHost(2.6), 31, 5, 0), small.alone(ofHost(6)), allMemory.judged(ofHost(12), 0, 0, 7500*time.Millisecond),
		allMemory.judged(ofHost(12), 31, 0, 0), allMemory.judged(ofHost(18), 12, 0, 0), allMemory.judged(ofHost(0.6), 90, 62, 0),
		unreadable("proc/meminfo"), garbled("proc/meminfo", line(t, whole, "MemAvailable", "")), garbled("proc/meminfo", line(t, whole, "MemAvailable", "MemAvailable: plenty kB\n")),
		unreadable("proc/pressure/memory"), garbled("proc/pressure/memory", "some total=1\n"),
		unreadable("proc/vmstat"), garbled("proc/vmstat", ""), unreadable("proc/swaps"), garbled("proc/swaps", "no table\n"),
		unreadable(zfs), garbled(zfs, "13 1 0x01\n"), garbled(zfs, "13 1 0x01\nname type data\nsize 4 99999999999999\nc_min 4 1\nc_max 4 1\n"),
	)
}
