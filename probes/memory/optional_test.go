package memory

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// A file that need not be there hides nothing that meminfo shows: neither that memory is low
// nor that it is sufficient. What it would have told is not known: with as little memory as
// stalls are bad with, nothing clears.
func TestAuxiliaryFilesHideNothing(t *testing.T) {
	t.Parallel()
	const zfs, psi, vmstat = "proc/spl/kstat/zfs/arcstats", "proc/pressure/memory", "proc/vmstat"
	for _, test := range []struct{ path, text string }{
		{psi, ""}, {psi, probetest.Binary}, {psi, "some avg10=0.00\n"}, {psi, "some total=1\nfull avg10=0.00 tot"}, {psi, "a directory"},
		{vmstat, ""}, {vmstat, probetest.Binary}, {vmstat, "allocstall_normal 15"}, {vmstat, "allocstall_normal -1\n"}, {vmstat, "a directory"},
		{zfs, ""}, {zfs, probetest.Binary}, {zfs, zfsText(t)[:100]}, {zfs, "\nc_min 4 0\nsize 4 99\n"}, {zfs, "a directory"},
	} {
		h := stallingHost(t)
		if test.text == "a directory" {
			probetest.Block(t, h, test.path)
		} else {
			probetest.Write(t, h, test.path, test.text)
		}
		probetest.Check(t, probetest.Observe(t, New(h, allMemory)), probes.OK, "MemorySufficient", "; unknown: ")
		for available, want := range map[string]string{"160000": "MemoryLow", "3000000": "MemoryNearThreshold"} {
			probetest.Write(t, h, "proc/meminfo", line(t, probetest.HealthyText(t, "proc/meminfo"), "MemAvailable", "MemAvailable: "+available+" kB\n"))
			if o := probetest.Observe(t, New(h, allMemory)); o.Reason != want || !strings.Contains(o.Message, filepath.Base(test.path)) {
				t.Errorf("%s is %.20q, %s kB available: %+v", test.path, test.text, available, o)
			}
		}
	}
}
