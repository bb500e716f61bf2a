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
	got, err := readSample(t.Context(), probetest.Healthy())
	if want := amounts(8192000*1024, 6144000*1024); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	text := line(t, probetest.HealthyText(t, "proc/meminfo"), "MemAvailable", "MemAvailable: 0 kB\n")
	o := probetest.Observe(t, New(probetest.With(t, "proc/meminfo", text), someMemory))
	probetest.Check(t, o, probes.Degraded, "MemoryLow", "available 0 B")
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
		"one endless line":         strings.Repeat("x", 1<<17),
		"cut off between lines":    whole[:strings.Index(whole, "MemAvailable")],
		"cut off before AnonPages": whole[:strings.Index(whole, "AnonPages")],
		"no MemTotal":              strings.TrimPrefix(whole, "MemTotal"),
		"no MemAvailable":          line(t, whole, "MemAvailable", ""),
		"no AnonPages":             line(t, whole, "AnonPages", ""),
	})
	probetest.Damaged(t, "proc/meminfo", func(h probes.Host) probes.Probe { return New(h, someMemory) }, "MeminfoGarbled", map[string]string{
		"binary":                           probetest.Binary,
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
		"more anonymous than there is":     line(t, whole, "AnonPages", "AnonPages: 16384001 kB\n"),
		"neither available nor used":       line(t, available("0 kB"), "AnonPages", "AnonPages: 0 kB\n"),
	})
}

func TestBelieve(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		vm          mem.VirtualMemoryStat
		total, anon uint64
		err         string
	}{
		{mem.VirtualMemoryStat{Total: 100, Available: 40}, 100, 50, ""},
		{mem.VirtualMemoryStat{Total: 100, Available: 0}, 100, 50, ""},
		{mem.VirtualMemoryStat{UsedPercent: math.NaN()}, 100, 50, "two reads"}, // gopsutil without a file
		{mem.VirtualMemoryStat{UsedPercent: math.NaN()}, 0, 0, "MemTotal of 0"},
		{mem.VirtualMemoryStat{Total: 100, Available: 101}, 100, 50, "MemAvailable is more"},
		{mem.VirtualMemoryStat{Total: 100, Available: 40}, 100, 101, "AnonPages is more"},
		{mem.VirtualMemoryStat{Total: 100}, 100, 0, "both be 0"},
	} {
		s, err := believe(&test.vm, test.total, test.anon)
		if (err == nil) != (test.err == "") || !strings.Contains(fmt.Sprint(err), test.err) {
			t.Errorf("%+v: %+v, %v, want error %q", test, s, err, test.err)
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
		s, total, err := readMeminfo(t.Context(), h.Proc)
		if err == nil && (total == 0 || s.available > total || s.anon > total || s.available+s.anon == 0 || total%1024 != 0) {
			t.Errorf("%q: %+v of %d", text, s, total)
		}
	})
}
