package memory

import (
	"fmt"
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

func TestMemoryForgivesABurst(t *testing.T) {
	t.Parallel()
	var samples []sample
	waited := time.Duration(0)
	for second := range 60 {
		percent := 60.0
		if second >= 20 { // 12 % a second for 3 s, and a stall with it
			percent = max(24, 60-12*float64(second-19))
		}
		if second >= 20 && second < 23 {
			waited += 300 * time.Millisecond
		}
		samples = append(samples, ofHost(percent).stalledFor(waited, waited/2))
	}
	for second, o := range followAll(samples...) {
		if o.Level != probes.OK || o.Severity >= 50 || second > 35 && o.Hysteresis {
			t.Errorf("after %d s: %+v", second, o)
		}
	}
}

// A flood of page cache takes all free memory, and none that programs could
// not have.
func TestMemoryForgivesAFloodOfPageCache(t *testing.T) {
	t.Parallel()
	h := probetest.CopyOfHealthy(t)
	whole := probetest.HealthyText(t, "proc/meminfo")
	m := New(h, allMemory)
	for second := range 20 {
		read := min(2_000_000, second*200_000)
		text := line(t, whole, "MemFree", fmt.Sprintf("MemFree: %d kB\n", 2048000-read))
		text = line(t, text, "Cached", fmt.Sprintf("Cached: %d kB\n", 6144000+read))
		text = line(t, text, "MemAvailable", fmt.Sprintf("MemAvailable: %d kB\n", 8192000-read/40))
		probetest.Write(t, h, "proc/meminfo", text)
		s, err := readHost(t, h, sample{})
		if err != nil {
			t.Fatal(err)
		}
		if o := m.follow(s.takenAt(time.Unix(int64(second), 0))); o.Level != probes.OK || o.Hysteresis || o.Severity > 0 {
			t.Errorf("after %d s: %+v", second, o)
		}
	}
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

// Memory that programs share (tmpfs, memfd, Postgres) is memory like any other: a
// host full of it is full.
func TestMemorySeesAHostFullOfSharedMemory(t *testing.T) {
	t.Parallel()
	h := memoryHost("tmpfs")
	o := probetest.Observe(t, New(h, allMemory))
	probetest.Check(t, o, probes.Degraded, "MemoryLow", "available 256 MiB of 64 GiB (0.3 %), threshold 5 %")
	s, err := readHost(t, h, sample{})
	if err != nil {
		t.Fatal(err)
	}
	o = allMemory.judged(s, 80, 80)
	probetest.Check(t, o, probes.Critical, "MemoryStalledFully", "all tasks stalled 80 %")
}

func BenchmarkMemoryObserve(b *testing.B) {
	m := New(probes.Host{Proc: "/proc"}, allMemory)
	b.ReportAllocs()
	for b.Loop() {
		m.Observe(b.Context())
	}
}
