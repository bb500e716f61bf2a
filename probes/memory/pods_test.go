package memory

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// groupOf is the memory of a control group v2.
func groupOf(limit, usage string, inactiveFile uint64) map[string]string {
	return map[string]string{
		"memory.max": limit + "\n", "memory.current": usage + "\n",
		"memory.stat": fmt.Sprintf("anon 4096\nfile 8192\ninactive_anon 0\nactive_anon 4096\ninactive_file %d\nactive_file 7\nslab_reclaimable 9\n", inactiveFile),
	}
}

// bytesText is a number of bytes as the kernel writes it.
func bytesText(bytes uint64) string { return fmt.Sprint(bytes) }

func TestMemoryOfAllPods(t *testing.T) {
	t.Parallel()
	v1 := func(limit, usage string, inactiveFile uint64) map[string]string {
		return map[string]string{
			"memory.limit_in_bytes": limit + "\n", "memory.usage_in_bytes": usage + "\n",
			"memory.stat": fmt.Sprintf("cache 1\ninactive_file 5\ntotal_cache 8192\ntotal_inactive_file %d\ntotal_active_file 7\n", inactiveFile),
		}
	}
	const usual = "available 7.81 GiB of 15.6 GiB (50.0 %), threshold 5 %"
	for name, test := range map[string]struct {
		groups  map[string]map[string]string // the healthy host has 15.6 GiB
		level   probes.Level
		near    bool
		message string
		clears  string
	}{
		"at the limit": {map[string]map[string]string{"kubepods.slice": groupOf(bytesText(12*gib), bytesText(12*gib), 0)}, probes.Degraded, false,
			"left to all pods 0 B of their limit of 12 GiB (0.0 %), threshold 100 MiB", "above 150 MiB left to all pods"},
		"at the limit, with page cache that the kubelet does not count": {
			map[string]map[string]string{"kubepods.slice": groupOf(bytesText(12*gib), bytesText(12*gib), 99*mib)}, probes.Degraded, false,
			"left to all pods 99 MiB of their limit of 12 GiB (0.8 %), threshold 100 MiB", "above 150 MiB left to all pods"},
		"near":                           {map[string]map[string]string{"kubepods.slice": groupOf(bytesText(12*gib), bytesText(12*gib-50*mib), 50*mib)}, probes.OK, true, "left to all pods 100 MiB", "above 150 MiB left to all pods"},
		"packed closely":                 {map[string]map[string]string{"kubepods.slice": groupOf(bytesText(12*gib), bytesText(12*gib-150*mib), 0)}, probes.OK, false, usual, "above 7.5 %"},
		"full of page cache":             {map[string]map[string]string{"kubepods": groupOf(bytesText(12*gib), bytesText(12*gib), 5*gib)}, probes.OK, false, usual, "above 7.5 %"},
		"more than the limit":            {map[string]map[string]string{"kubepods": groupOf(bytesText(12*gib), bytesText(13*gib), 0)}, probes.Degraded, false, "left to all pods 0 B", "above 150 MiB left to all pods"},
		"a small limit":                  {map[string]map[string]string{"kubepods": groupOf(bytesText(400*mib), bytesText(280*mib), 0)}, probes.OK, false, usual, "above 7.5 %"},
		"no limit":                       {map[string]map[string]string{"kubepods": groupOf("max", bytesText(15*gib), 0)}, probes.OK, false, usual, "above 7.5 %"},
		"a limit as large as the memory": {map[string]map[string]string{"kubepods": groupOf(bytesText(16384000<<10), bytesText(16384000<<10), 0)}, probes.OK, false, usual, "above 7.5 %"},
		"v1":                             {map[string]map[string]string{"memory/kubepods": v1(bytesText(12*gib), bytesText(12*gib), 20*mib)}, probes.Degraded, false, "left to all pods 20 MiB of their limit of 12 GiB", "above 150 MiB left to all pods"},
		"v1, no limit":                   {map[string]map[string]string{"memory/kubepods": v1("9223372036854771712", bytesText(12*gib), 0)}, probes.OK, false, usual, "above 7.5 %"},
		"the tightest of two": {map[string]map[string]string{
			"kubepods": groupOf(bytesText(12*gib), bytesText(gib), 0), "kubelet/kubepods": groupOf(bytesText(6*gib), bytesText(6*gib-gib/100), 0),
		}, probes.Degraded, false, "left to all pods 10.2 MiB of their limit of 6 GiB", "above 150 MiB left to all pods"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := probetest.Observe(t, New(withGroups(t, test.groups), allMemory))
			reason := map[bool]string{true: "MemoryNearThreshold", false: "MemorySufficient"}[test.near]
			if test.level == probes.Degraded {
				reason = "AllocatableMemoryLow"
			}
			probetest.Check(t, o, test.level, reason, test.message)
			if o.Clears != test.clears || o.Hysteresis != test.near {
				t.Errorf("hysteresis %t, clears %q, want %t, %q", o.Hysteresis, o.Clears, test.near, test.clears)
			}
		})
	}
}

// withGroups is the healthy host with control groups.
func withGroups(t *testing.T, groups map[string]map[string]string) probes.Host {
	t.Helper()
	h := probetest.CopyOfHealthy(t)
	for group, files := range groups {
		for file, text := range files {
			probetest.Write(t, h, "sys/fs/cgroup/"+group+"/"+file, text)
		}
	}
	return h
}

// A host that is itself low says so first.
func TestMemoryOfTheHostIsToldFirst(t *testing.T) {
	t.Parallel()
	s := ofHost(4)
	s.pods = allocatable{limit: 80 * gib}
	o := allMemory.alone(s)
	probetest.Check(t, o, probes.Degraded, "MemoryLow", "available 4 GiB of 100 GiB")
	if o.Severity != 100 {
		t.Errorf("the severity is that of the worst cause: %d", o.Severity)
	}
	off := allMemory
	off.AvailableBytes = 0
	s = ofHost(50)
	s.pods = allocatable{limit: 80 * gib}
	probetest.Check(t, off.alone(s), probes.OK, "MemorySufficient", "")
}

func TestMemoryOfAllPodsDamage(t *testing.T) {
	t.Parallel()
	whole := groupOf(bytesText(12*gib), bytesText(12*gib), 0)
	for name, test := range map[string]struct {
		file, text string // empty: the file is missing
		reason     string
	}{
		"the limit is empty":          {"memory.max", "\n", "PodsMemoryGarbled"},
		"a limit of nothing":          {"memory.max", "0\n", "PodsMemoryGarbled"},
		"a negative limit":            {"memory.max", "-1\n", "PodsMemoryGarbled"},
		"a limit of 2^64":             {"memory.max", "18446744073709551616\n", "PodsMemoryGarbled"},
		"a limit that is cut off":     {"memory.max", "128849", "PodsMemoryGarbled"},
		"an endless limit":            {"memory.max", strings.Repeat("1", 1<<20+1), "PodsMemoryUnreadable"},
		"no usage":                    {"memory.current", "", "PodsMemoryUnreadable"},
		"a usage of words":            {"memory.current", "much\n", "PodsMemoryGarbled"},
		"no stat":                     {"memory.stat", "", "PodsMemoryUnreadable"},
		"stat without the line":       {"memory.stat", "anon 1\nx_inactive_file 5\ninactive_files 5\n", "PodsMemoryGarbled"},
		"stat with a word":            {"memory.stat", "inactive_file much\n", "PodsMemoryGarbled"},
		"stat that is cut off":        {"memory.stat", "anon 1\ninactive_file 12", "PodsMemoryGarbled"},
		"stat that is no text at all": {"memory.stat", probetest.Binary, "PodsMemoryGarbled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := maps.Clone(whole)
			if files[test.file] = test.text; test.text == "" {
				delete(files, test.file)
			}
			h := withGroups(t, map[string]map[string]string{"kubepods": files})
			probetest.Check(t, probetest.Observe(t, New(h, allMemory)), probes.Unknown, test.reason, test.file)
		})
	}
}
