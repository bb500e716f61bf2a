package memory

import (
	"fmt"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/probes"
	"github.com/taintlet/taintlet/test/probetest"
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
	got, err := readHost(t, probetest.Healthy(), sample{})
	want := sample{available: 8192000 << 10, held: 8192000 << 10}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	text := line(t, probetest.HealthyText(t, "proc/meminfo"), "MemAvailable", "MemAvailable: 0 kB\n")
	o := probetest.Observe(t, New(probetest.With(t, "proc/meminfo", text), someMemory))
	probetest.Check(t, o, probes.Degraded, "MemoryLow", "available 0 B")
}

// withLines is the meminfo of the healthy host with some lines replaced; those that it
// does not have follow at its end. Values are in KiB, but for numbers of pages.
func withLines(t testing.TB, kB map[string]int) string {
	t.Helper()
	text := probetest.HealthyText(t, "proc/meminfo")
	for name, value := range kB {
		replacement := fmt.Sprintf("%s: %d kB\n", name, value)
		if strings.HasPrefix(name, "HugePages_") {
			replacement = fmt.Sprintf("%s: %d\n", name, value)
		}
		switch {
		case strings.HasPrefix(text, name+":"):
			_, rest, _ := strings.Cut(text, "\n")
			text = replacement + rest
		case strings.Contains(text, "\n"+name+":"):
			text = line(t, text, name, replacement)
		default:
			text += replacement
		}
	}
	return text
}

// Whoever has taken the memory, a host without it is full. Nothing but the first two
// lines shows zram, sockets, pipes and the memory of drivers.
func TestMemorySeesAHostFullOfAnything(t *testing.T) {
	t.Parallel()
	const mib = 1 << 10 // KiB
	for name, test := range map[string]struct {
		kB      map[string]int
		message string
	}{
		"zram":         {map[string]int{"MemAvailable": 123 * mib, "AnonPages": 1540 * mib}, "available 123 MiB of 15.6 GiB (0.7 %), threshold 5 %"},
		"slab":         {map[string]int{"MemTotal": 64 << 20, "MemAvailable": 250 * mib, "AnonPages": 2 << 20, "SUnreclaim": 61 << 20}, "available 250 MiB of 64 GiB (0.3 %), threshold 5 %"},
		"shared":       {map[string]int{"MemAvailable": 123 * mib, "AnonPages": 300 * mib, "Shmem": 15000 * mib}, "available 123 MiB of 15.6 GiB"},
		"beside pages": {map[string]int{"MemAvailable": 123 * mib, "AnonPages": 300 * mib, "HugePages_Total": 4000, "Hugepagesize": 2048}, "available 123 MiB of 7.81 GiB (1.5 %), threshold 5 %"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := probetest.Observe(t, New(probetest.With(t, "proc/meminfo", withLines(t, test.kB)), allMemory))
			probetest.Check(t, o, probes.Degraded, "MemoryLow", test.message)
		})
	}
}

// Huge pages are no memory that programs could have without asking for them. Those of
// another size than the default one are in sysfs alone.
func TestHugePagesAreNotInTheWhole(t *testing.T) {
	t.Parallel()
	const gibOfKB = 1 << 20
	for name, test := range map[string]struct {
		kB    map[string]int
		sysfs map[string]string // pages by size
		whole float64
	}{
		"of the default size":                {map[string]int{"MemTotal": 16 * gibOfKB, "HugePages_Total": 2048, "Hugepagesize": 2048}, nil, 12},
		"of every size":                      {map[string]int{"MemTotal": 16 * gibOfKB, "HugePages_Total": 2048, "Hugepagesize": 2048}, map[string]string{"2048kB": "2048", "1048576kB": "4"}, 8},
		"of another size alone":              {map[string]int{"MemTotal": 16 * gibOfKB, "Hugepagesize": 2048}, map[string]string{"2048kB": "0", "1048576kB": "4"}, 12},
		"being made":                         {map[string]int{"MemTotal": 16 * gibOfKB, "MemAvailable": 10 * gibOfKB, "HugePages_Total": 4096, "Hugepagesize": 2048}, nil, 10},
		"none":                               {map[string]int{"MemTotal": 16 * gibOfKB}, nil, 16},
		"a kernel without huge pages at all": {map[string]int{"MemTotal": 16 * gibOfKB}, nil, 16},
		"a container with a meminfo of its own, on a host with many": {map[string]int{"MemTotal": 16 * gibOfKB}, map[string]string{"1048576kB": "100"}, 16},
		"a count that cannot be read":                                {map[string]int{"MemTotal": 16 * gibOfKB}, map[string]string{"1048576kB": "many"}, 16},
		"a size that is none":                                        {map[string]int{"MemTotal": 16 * gibOfKB}, map[string]string{"0kB": "1"}, 16},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := withLines(t, test.kB)
			if strings.HasPrefix(name, "a kernel without") {
				text = text[:strings.Index(text, "HugePages_Total")]
			}
			h := probetest.With(t, "proc/meminfo", text)
			for size, count := range test.sysfs {
				probetest.Write(t, h, "sys/kernel/mm/hugepages/hugepages-"+size+"/nr_hugepages", count+"\n")
			}
			s, err := readHost(t, h, sample{})
			if err != nil || s.whole() != test.whole*gib {
				t.Errorf("%v GiB, %v, want %v GiB", s.whole()/gib, err, test.whole)
			}
		})
	}
}

func TestMemoryDamage(t *testing.T) {
	t.Parallel()
	whole := probetest.HealthyText(t, "proc/meminfo")
	available := func(value string) string { return line(t, whole, "MemAvailable", "MemAvailable: "+value+"\n") }
	total := func(value string) string {
		_, rest, _ := strings.Cut(whole, "\n")
		return "MemTotal: " + value + "\n" + rest
	}
	probe := func(h probes.Host) probes.Probe { return New(h, someMemory) }
	probetest.Missing(t, "proc/meminfo", probe, "MeminfoUnreadable")
	probetest.Damaged(t, "proc/meminfo", probe, "MeminfoUnreadable", map[string]string{
		"empty":               "",
		"binary":              probetest.Binary,
		"one endless line":    strings.Repeat("x", 1<<17),
		"no MemTotal":         strings.TrimPrefix(whole, "MemTotal"),
		"MemTotal 0":          total("0 kB"),
		"MemTotal wraps to 0": total("18014398509481984 kB"),
	})
	probetest.Damaged(t, "proc/meminfo", probe, "MeminfoIncomplete", map[string]string{
		"cut off between lines":          whole[:strings.Index(whole, "MemAvailable")],
		"cut off within a name":          whole[:strings.Index(whole, "ailable")],
		"cut off within MemAvailable":    whole[:strings.Index(whole, "8192000")+4],
		"cut off before AnonPages":       whole[:strings.Index(whole, "AnonPages")],
		"cut off before VmallocTotal":    whole[:strings.Index(whole, "VmallocTotal")],
		"cut off within VmallocTotal":    whole[:strings.Index(whole, "VmallocTotal")+5],
		"VmallocTotal without its value": whole[:strings.Index(whole, "VmallocTotal")+len("VmallocTotal")],
	})
	probetest.Damaged(t, "proc/meminfo", probe, "MeminfoGarbled", map[string]string{
		"more than a number can be":     total("9007199254740992 kB"),
		"words":                         available("plenty kB"),
		"no number":                     available(" kB"),
		"negative":                      available("-1 kB"),
		"exponent":                      available("8e6 kB"),
		"hexadecimal":                   available("0x100 kB"),
		"another unit":                  available("8192000 MB"),
		"2^53":                          available("9007199254740992 kB"),
		"2^64":                          available("18446744073709551616 kB"),
		"more available than there is":  available("16384001 kB"),
		"more huge pages than there is": line(t, whole, "HugePages_Total", "HugePages_Total: 8001\n"),
		"as many as there are numbers":  line(t, whole, "HugePages_Total", "HugePages_Total: 9223372036854775807\n"),
		"neither available nor active":  line(t, available("0 kB"), "Active", "Active: 0 kB\n"),
	})
}

func FuzzReadMeminfo(f *testing.F) {
	f.Add(probetest.HealthyText(f, "proc/meminfo"))
	f.Add("MemTotal: 1 kB\nMemAvailable: 1 kB\nVmallocTotal: 1 kB\n")
	f.Add(probetest.Binary)
	f.Fuzz(func(t *testing.T, text string) {
		h := probes.Host{Root: t.TempDir()}
		h.Proc, h.Sys = h.Root, h.Root
		probetest.Write(t, h, "meminfo", text)
		m, err := readMeminfo(t.Context(), h)
		if err == nil && (m.total == 0 || m.available > m.total || m.hugePages > m.total || m.total%1024 != 0) {
			t.Errorf("%q: %+v", text, m)
		}
		if s, err := readHost(t, h, sample{}); err == nil && (s.available+s.held > m.total || s.whole() <= 0) {
			t.Errorf("%q: %+v of %d", text, s, m.total)
		}
	})
}
