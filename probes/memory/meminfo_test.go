package memory

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/shirou/gopsutil/v3/mem"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/probes/probetest"
)

// line replaces the one line of text that starts with the key.
func line(t testing.TB, text, key, replacement string) string {
	t.Helper()
	before, after, ok := strings.Cut(text, "\n"+key+":")
	if !ok {
		t.Fatalf("no line %s", key)
	}
	_, after, _ = strings.Cut(after, "\n")
	return before + "\n" + replacement + after
}

func TestMemoryReadsTheNumbers(t *testing.T) {
	t.Parallel()
	got, err := readSample(t.Context(), probetest.Healthy(), sample{})
	want := sample{available: 8192000 << 10, held: (6144000 + 51200) << 10, capacity: 16384000 << 10}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	text := line(t, probetest.HealthyText(t, "proc/meminfo"), "MemAvailable", "MemAvailable: 0 kB\n")
	o := probetest.Observe(t, New(probetest.With(t, "proc/meminfo", text), someMemory))
	probetest.Check(t, o, probes.Degraded, "MemoryLow", "available 0 B")
}

// What programs hold is every page once. The values are those of a host, in MiB,
// while the named memory was taken on top of the line before.
func TestHeld(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		m    meminfo
		want uint64
	}{
		{"nothing special", meminfo{anon: 492, shmem: 8, unevictable: 21, pageCache: 2688, fileLRU: 2681}, 500},
		{"200 MiB of a file, mlocked", meminfo{anon: 493, shmem: 8, unevictable: 221, pageCache: 2688, fileLRU: 2481}, 700},
		{"100 MiB anonymous, mlocked", meminfo{anon: 593, shmem: 8, unevictable: 321, pageCache: 2688, fileLRU: 2481}, 800},
		{"100 MiB shared, mlocked", meminfo{anon: 593, shmem: 108, unevictable: 421, pageCache: 2788, fileLRU: 2481}, 900},
		{"150 MiB on ramfs", meminfo{anon: 593, shmem: 108, unevictable: 571, pageCache: 2938, fileLRU: 2480}, 1051},
		{"pages on their way to a LRU", meminfo{anon: 593, pageCache: 100}, 593},
		{"300 MiB given up by MADV_FREE", meminfo{anon: 893, shmem: 8, unevictable: 21, pageCache: 2688, fileLRU: 2980}, 901},
		{"a kernel without these lines", meminfo{anon: 593}, 593},
	} {
		if got := test.m.held(); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

// What is held never makes the whole larger than the memory, because a page can
// be in two lines for a moment.
func TestTheWholeIsAtMostTheMemory(t *testing.T) {
	t.Parallel()
	text := line(t, probetest.HealthyText(t, "proc/meminfo"), "Shmem", "Shmem: 16384000 kB\n")
	s, err := readSample(t.Context(), probetest.With(t, "proc/meminfo", text), sample{})
	if err != nil || s.whole() != 16384000<<10 {
		t.Errorf("%+v, %v", s, err)
	}
}

// Before Linux 2.6 meminfo began with two tables, and some that look like Linux
// still do.
func TestMeminfoWithTables(t *testing.T) {
	t.Parallel()
	const tables = `        total:    used:    free:  shared: buffers:  cached:
Mem:  16777216000 8388608000 2097152000        0 209715200 6291456000
Swap: 2147483648        0 2147483648
`
	text := tables + probetest.HealthyText(t, "proc/meminfo")
	o := probetest.Observe(t, New(probetest.With(t, "proc/meminfo", text), someMemory))
	want := probetest.Observe(t, New(probetest.Healthy(), someMemory))
	if o != want {
		t.Errorf("got %+v, want %+v", o, want)
	}
	o = probetest.Observe(t, New(probetest.With(t, "proc/meminfo", tables), someMemory))
	probetest.Check(t, o, probes.Unknown, "MeminfoIncomplete", "no line MemTotal")
}

func TestMemoryDamage(t *testing.T) {
	t.Parallel()
	whole := probetest.HealthyText(t, "proc/meminfo")
	available := func(value string) string { return line(t, whole, "MemAvailable", "MemAvailable: "+value+"\n") }
	total := func(value string) string {
		_, rest, _ := strings.Cut(whole, "\n")
		return "MemTotal: " + value + "\n" + rest
	}
	inNumber := strings.Index(whole, "6144000 kB\nMapped") + 4
	probetest.Missing(t, "proc/meminfo", func(h probes.Host) probes.Probe { return New(h, someMemory) }, "MeminfoUnreadable")
	probetest.Damaged(t, "proc/meminfo", func(h probes.Host) probes.Probe { return New(h, someMemory) }, "MeminfoIncomplete", map[string]string{
		"empty":                    "",
		"cut off between lines":    whole[:strings.Index(whole, "MemAvailable")],
		"cut off before AnonPages": whole[:strings.Index(whole, "AnonPages")],
		"no MemTotal":              strings.TrimPrefix(whole, "MemTotal"),
		"no MemAvailable":          line(t, whole, "MemAvailable", ""),
		"no AnonPages":             line(t, whole, "AnonPages", ""),
	})
	probetest.Damaged(t, "proc/meminfo", func(h probes.Host) probes.Probe { return New(h, someMemory) }, "MeminfoGarbled", map[string]string{
		"binary":                           probetest.Binary,
		"one endless line":                 strings.Repeat("x", 1<<17),
		"cut off within a name":            whole[:strings.Index(whole, "ailable")],
		"cut off within AnonPages' number": whole[:inNumber],
		"MemTotal 0":                       total("0 kB"),
		"MemTotal wraps to 0":              total("18014398509481984 kB"),
		"words":                            available("plenty kB"),
		"no number":                        available(" kB"),
		"negative":                         available("-1 kB"),
		"exponent":                         available("8e6 kB"),
		"hexadecimal":                      available("0x100 kB"),
		"no unit":                          available("8192000"),
		"another unit":                     available("8192000 MB"),
		"2^63":                             available("9223372036854775808 kB"),
		"2^64":                             available("18446744073709551616 kB"),
		"more available than there is":     available("16384001 kB"),
		"more shared than there is":        line(t, whole, "Shmem", "Shmem: 16384001 kB\n"),
		"a part of the page cache garbled": line(t, whole, "Cached", "Cached: much kB\n"),
		"more anonymous than there is":     line(t, whole, "AnonPages", "AnonPages: 16384001 kB\n"),
		"neither available nor used":       line(t, available("0 kB"), "AnonPages", "AnonPages: 0 kB\n"),
	})
}

func TestBelieve(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		vm  mem.VirtualMemoryStat
		m   meminfo
		err string
	}{
		{mem.VirtualMemoryStat{Total: 100, Available: 40}, meminfo{total: 100, anon: 50}, ""},
		{mem.VirtualMemoryStat{Total: 100, Available: 0}, meminfo{total: 100, anon: 50}, ""},
		{mem.VirtualMemoryStat{UsedPercent: math.NaN()}, meminfo{total: 100, anon: 50}, "two reads"}, // gopsutil without a file
		{mem.VirtualMemoryStat{UsedPercent: math.NaN()}, meminfo{}, "MemTotal of 0"},
		{mem.VirtualMemoryStat{Total: 100, Available: 101}, meminfo{total: 100, anon: 50}, "MemAvailable is more"},
		{mem.VirtualMemoryStat{Total: 100, Available: 40}, meminfo{total: 100, anon: 101}, "AnonPages is more"},
		{mem.VirtualMemoryStat{Total: 100, Available: 40}, meminfo{total: 100, anon: 1, shmem: 101}, "more Shmem than"},
		{mem.VirtualMemoryStat{Total: 100}, meminfo{total: 100}, "both be 0"},
	} {
		got, err := test.m.believe(&test.vm)
		if (err == nil) != (test.err == "") || !strings.Contains(fmt.Sprint(err), test.err) || err == nil && got.available != test.vm.Available {
			t.Errorf("%+v: %+v, %v, want error %q", test, got, err, test.err)
		}
	}
}

func TestMemoryWithoutProc(t *testing.T) {
	t.Parallel()
	o := probetest.Observe(t, New(probes.Host{Proc: "testdata/nowhere"}, someMemory))
	probetest.Check(t, o, probes.Unknown, "MeminfoUnreadable", "testdata/nowhere")
}

func FuzzReadMeminfo(f *testing.F) {
	f.Add(probetest.HealthyText(f, "proc/meminfo"))
	f.Add("MemTotal: 1 kB\nMemAvailable: 1 kB\nAnonPages: 0 kB\n")
	f.Add(probetest.Binary)
	f.Fuzz(func(t *testing.T, text string) {
		h := probes.Host{Root: t.TempDir()}
		h.Proc = h.Root
		probetest.Write(t, h, "meminfo", text)
		m, err := readMeminfo(t.Context(), h.Proc)
		if err == nil && (m.total == 0 || m.available > m.total || m.anon > m.total || m.available+m.anon == 0 || m.total%1024 != 0) {
			t.Errorf("%q: %+v", text, m)
		}
		if s, err := readSample(t.Context(), h, sample{}); err == nil && (s.available+s.held > m.total || s.whole() <= 0) {
			t.Errorf("%q: %+v of %d", text, s, m.total)
		}
	})
}
