package memory

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/pressure"
	"github.com/taintlet/taintlet/test/probetest"
)

// readHost reads a sample of a host, after a sample before it.
func readHost(t testing.TB, h probes.Host, prev sample) (sample, error) {
	t.Helper()
	return New(h, allMemory).readSample(t.Context(), prev)
}

// followAll judges a sequence of samples that are a second apart, and returns
// the observations.
func followAll(samples ...sample) (all []probes.Observation) {
	m := New(probetest.Healthy(), allMemory)
	for i, s := range samples {
		all = append(all, m.follow(s.takenAt(time.Unix(1000+int64(i), 0))))
	}
	return all
}

// memoryHost is one of the hosts in testdata.
func memoryHost(name string) probes.Host {
	return probetest.HostAt(filepath.Join("testdata", name))
}

func TestMemoryOfOtherHosts(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		sample  sample
		message string
	}{
		"512MiB": {sample{available: 248 * mib, held: 477184<<10 - 248*mib, measured: true, stalls: pressure.Totals{Some: 8423 * time.Microsecond, Full: 5120 * time.Microsecond}},
			"available 248 MiB of 466 MiB (53.2 %), threshold 100 MiB"},
		"4TiB": {sample{available: 164 * gib, held: 4324327424<<10 - 164*gib, measured: true, stalls: pressure.Totals{Some: 98765432109 * time.Microsecond, Full: 1234567890 * time.Microsecond}},
			"available 164 GiB of 4.03 TiB (3.9 %), threshold 12.8 GiB"},
		"zram": {sample{available: 1200 * mib, held: 8081408<<10 - 1200*mib, measured: true, stalls: pressure.Totals{Some: 7654321 * time.Microsecond, Full: 321098 * time.Microsecond}},
			"available 1.17 GiB of 7.71 GiB (15.2 %), threshold 5 %"},
		"zfs": {sample{available: 2200*mib + 42*gib, held: 64*gib - 2200*mib - 42*gib, arc: 42 * gib, measured: true, stalls: pressure.Totals{Some: 1234 * time.Microsecond, Full: 567 * time.Microsecond}},
			"available 44.1 GiB of 64 GiB (68.9 %), 42 GiB of it ZFS cache, threshold 5 %"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := readHost(t, memoryHost(name), sample{})
			if err != nil || s != want.sample {
				t.Errorf("read %+v, %v, want %+v", s, err, want.sample)
			}
			probetest.Check(t, followAll(s, s)[1], probes.OK, "MemorySufficient", want.message)
		})
	}
}
