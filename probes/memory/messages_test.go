package memory

import (
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

func TestMessages(t *testing.T) { //nolint:paralleltest // it may write its file
	small := allMemory
	small.AvailablePercent, small.AvailableBytes = 5, 8*gib
	withARC := ofHost(30)
	withARC.arc = 2 * gib
	calm, stalled := ofHost(12).stalledFor(0, 0), ofHost(12).stalledFor(900*time.Millisecond, 0)
	calm.reclaims, stalled.reclaims = reclaims{7, true}, reclaims{7, true}
	seldom := stalled
	seldom.reclaims.count += 3
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
	meminfo := func(key, value string) probes.Observation {
		if key == "MemTotal" { // the first line
			_, rest, _ := strings.Cut(whole, "\n")
			return garbled("proc/meminfo", "MemTotal: "+value+"\n"+rest)
		}
		return garbled("proc/meminfo", line(t, whole, key, key+": "+value+"\n"))
	}
	probetest.Golden(t, *update,
		allMemory.judged(ofHost(50), 0, 0), allMemory.alone(withARC), allMemory.judged(ofHost(6.4), 3, 0),
		allMemory.judged(ofHost(2.6), 31, 5), small.alone(ofHost(6)),
		allMemory.judged(ofHost(12), 31, 0), allMemory.judged(ofHost(18), 12, 0), allMemory.judged(ofHost(0.6), 90, 62),
		allMemory.after(calm, stalled, time.Second), allMemory.after(calm, seldom, time.Second),
		unreadable("proc/meminfo"), garbled("proc/meminfo", whole[:strings.Index(whole, "VmallocTotal")]), garbled("proc/meminfo", line(t, whole, "MemAvailable", "MemAvailable: plenty kB\n")),
		meminfo("MemTotal", "0 kB"), meminfo("MemTotal", "9007199254740992 kB"), meminfo("MemAvailable", "99999999 kB"), meminfo("HugePages_Total", "many"), meminfo("HugePages_Total", "8001"),
		garbled("proc/meminfo", line(t, line(t, whole, "MemAvailable", "MemAvailable: 0 kB\n"), "Active", "Active: 0 kB\n")),
		unreadable("proc/pressure/memory"), garbled("proc/pressure/memory", "some total=1\n"),
		unreadable("proc/vmstat"), garbled("proc/vmstat", ""), garbled("proc/vmstat", "allocstall_normal many\n"), garbled("proc/vmstat", "allocstall_normal 1"),
		unreadable(zfs), garbled(zfs, "13 1 0x01\n"),
	)
}
