package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
)

// vmstatText is the part of vmstat around the lines that count.
const vmstatText = `nr_free_pages 5472000
pgpgin 4711
allocstall_dma 0
allocstall_dma32 2
allocstall_normal 1577
allocstall_movable 14387
allocstall_device 0
pgscan_kswapd 3231
pgscan_direct 773131
`

func TestParseReclaims(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		want       reclaims
		err        string
	}{
		{"a real one", vmstatText, reclaims{15966 + 100, true}, ""},
		{"kswapd alone, of each zone", "pgscan_kswapd_dma 31\npgscan_kswapd_normal 33\n", reclaims{2, true}, ""},
		{"before there were zones in it", "allocstall 7\n", reclaims{7, true}, ""},
		{"no such line", "nr_free_pages 5472000\nnr_stalls_of_allocstall 3\n", reclaims{}, ""},
		{"2^64-1", "allocstall_normal 18446744073709551615\n", reclaims{1<<64 - 1, true}, ""},
		{"2^64", "allocstall_normal 18446744073709551616\n", reclaims{}, "no number"},
		{"negative", "allocstall_normal -1\n", reclaims{}, "no number"},
		{"exponent", "allocstall_normal 1e3\n", reclaims{}, "no number"},
		{"no value", "allocstall_normal\n", reclaims{}, "no number"},
		{"empty", "", reclaims{}, "empty"},
		{"cut off", strings.TrimSuffix(vmstatText, "\n"), reclaims{}, "cut off"},
		{"binary", probetest.Binary, reclaims{}, "cut off"},
	} {
		got, err := parseReclaims(test.text)
		if err == nil && got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %+v, %v, want %+v, %q", test.name, got, err, test.want, test.err)
		}
	}
}

// FuzzReclaims checks that no counter is read from a vmstat that is cut off or without it.
func FuzzReclaims(f *testing.F) {
	for _, text := range []string{"", "nr_free_pages 1\nallocstall_normal 3\nallocstall_movable 4\n", "allocstall 7\n", "allocstall_dma -1\n", "allocstall_dma 1", "allocstall_x 18446744073709551615\nallocstall_y 1\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseReclaims(text)
		if err == nil && (!strings.HasSuffix(text, "\n") || r.counted != (strings.Contains("\n"+text, "\nallocstall") || strings.Contains("\n"+text, "\npgscan_kswapd"))) {
			t.Errorf("%+v of %q", r, text)
		}
	})
}

// stallingHost is the healthy host with tasks that have waited for memory.
func stallingHost(t *testing.T) probes.Host {
	t.Helper()
	h := probetest.CopyOfHealthy(t)
	if err := os.Mkdir(filepath.Join(h.Proc, "pressure"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeStalls(t, h, 1000)
	return h
}

func writeStalls(t *testing.T, h probes.Host, micros int) {
	t.Helper()
	probetest.Write(t, h, "proc/pressure/memory", fmt.Sprintf("some total=%d\nfull total=%d\n", micros, micros/2))
}

// Reclaims are read where tasks have waited since the sample before.
func TestReclaimsAreReadWhenTasksWait(t *testing.T) {
	t.Parallel()
	h := stallingHost(t)
	var last sample
	read := func(step string, want reclaims) {
		t.Helper()
		s, err := readHost(t, h, last)
		if err != nil || s.reclaims != want {
			t.Errorf("%s: %+v, %v, want %+v", step, s.reclaims, err, want)
		}
		last = s
	}
	read("no vmstat", reclaims{})
	last = sample{}
	probetest.Write(t, h, "proc/vmstat", vmstatText)
	read("the first sample", reclaims{16066, true})
	probetest.Write(t, h, "proc/vmstat", "allocstall 16067\n")
	read("nobody waits", reclaims{16066, true})
	writeStalls(t, h, 2000)
	read("tasks wait", reclaims{16067, true})
	probetest.Remove(t, h, "proc/pressure/memory")
	read("pressure is not measured", reclaims{})
}

// A stall inside a control group's own limit is none of the host: without
// reclaim by the host it does not count, however long tasks wait.
func TestStallsCountOnlyAsFarAsTheHostReclaims(t *testing.T) {
	t.Parallel()
	by := func(count uint64, counted bool) reclaims { return reclaims{count, counted} }
	judged := func(percent float64, before, now reclaims) probes.Observation {
		prev, cur := ofHost(percent).stalledFor(0, 0), ofHost(percent).stalledFor(900*time.Millisecond, 800*time.Millisecond)
		prev.reclaims, cur.reclaims = before, now
		return allMemory.after(prev, cur, time.Second)
	}
	const notCounted = "stalled 90 % of the last second, none of it by the host's own reclaim"
	for name, test := range map[string]struct {
		before, now reclaims
		want        string // empty: all of the stall counts
	}{
		"the host does not reclaim":  {by(7, true), by(7, true), notCounted},
		"it does once":               {by(7, true), by(8, true), "stalled 90 % of the last second, 2 % by the host's own reclaim"},
		"a little too seldom":        {by(7, true), by(14, true), "stalled 90 % of the last second, 14 % by the host's own reclaim"},
		"the count went backwards":   {by(7, true), by(6, true), notCounted},
		"as often as tasks wait":     {by(7, true), by(52, true), ""},
		"much more often":            {by(7, true), by(9000, true), ""},
		"no counts":                  {by(0, false), by(0, false), ""},
		"the counts have come":       {by(0, false), by(7, true), ""},
		"the counts have gone":       {by(7, true), by(0, false), ""},
		"the counts start from zero": {by(0, true), by(45, true), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.want != "" {
				probetest.Check(t, judged(4, test.before, test.now), probes.Degraded, "MemoryLow", test.want)
				if o := judged(14, test.before, test.now); o.Level != probes.OK {
					t.Errorf("got %+v", o)
				}
				return
			}
			o := judged(14, test.before, test.now)
			probetest.Check(t, o, probes.Degraded, "MemoryStalled", "stalled 90 % of the last second, threshold 15 %")
			probetest.Check(t, judged(4, test.before, test.now), probes.Critical, "MemoryStalledFully", "all tasks stalled 80 % of the last second, threshold 40 %")
			probetest.NoBetter(t, o, judged(14, by(7, true), by(7, true)))
		})
	}
}
