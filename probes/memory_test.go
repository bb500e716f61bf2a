package probes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shirou/gopsutil/v3/mem"
)

const mib, gib = 1 << 20, 1 << 30

func TestMemoryJudge(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name            string
		t               MemoryThresholds
		s               memSample
		level           Level
		reason, message string
		severity        int
	}{
		{"plenty", someMemory, memSample{8 * gib, 8 * gib}, OK, "MemorySufficient",
			"available 8 GiB of 16 GiB (50.0 %), threshold 5 %", 0},
		{"low", someMemory, memSample{412 * mib, 15562 * mib}, Degraded, "MemoryLow",
			"available 412 MiB of 15.6 GiB (2.5 %), threshold 5 %", 74},
		{"at the threshold", someMemory, memSample{5 * gib, 95 * gib}, OK, "MemoryNearThreshold",
			"available 5 GiB of 100 GiB (5.0 %), threshold 5 %", 50},
		{"a byte below the threshold", someMemory, memSample{5*gib - 1, 95*gib + 1}, Degraded, "MemoryLow", "(4.9 %)", 50},
		{"a byte below the clear threshold", someMemory, memSample{75*gib/10 - 1, 925*gib/10 + 1}, OK, "MemoryNearThreshold", "(7.4 %)", 0},
		{"at the clear threshold", someMemory, memSample{75 * gib / 10, 925 * gib / 10}, OK, "MemorySufficient", "(7.5 %)", 0},
		{"the bytes decide on a small host", someMemory, memSample{99 * mib, 900 * mib}, Degraded, "MemoryLow", "threshold 100 MiB", 50},
		{"nothing", someMemory, memSample{0, gib}, Degraded, "MemoryLow", "available 0 B of 1 GiB (0.0 %)", 100},
		{"no thresholds", MemoryThresholds{}, memSample{0, gib}, OK, "MemorySufficient", "threshold 0 %", 0},
		{"as large as it gets", someMemory, memSample{1 << 63, 1 << 63}, OK, "MemorySufficient", "8 EiB of 16 EiB", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := test.t.judge(test.s)
			check(t, o, test.level, test.reason, test.message)
			if o.Severity != test.severity {
				t.Errorf("severity %d, want %d", o.Severity, test.severity)
			}
		})
	}
}

func TestMemoryIsMonotone(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 10 {
		whole := gib + random.Uint64N(1<<40)
		thresholds := MemoryThresholds{1 + 30*random.Float64(), random.Uint64N(gib / 2), 1 + random.Float64()}
		monotone(t, func(available uint64) Observation {
			return thresholds.judge(memSample{available, whole - available})
		}, whole)
	}
}

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
	got, err := readMemory(t.Context(), healthyHost.Proc)
	if want := (memSample{8192000 * 1024, 6144000 * 1024}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	text := line(t, healthyText(t, "proc/meminfo"), "MemAvailable", "MemAvailable: 0 kB\n")
	o := observe(t, NewMemory(with(t, "proc/meminfo", text), someMemory))
	check(t, o, Degraded, "MemoryLow", "available 0 B")
}

func TestMemoryDamage(t *testing.T) {
	t.Parallel()
	whole := healthyText(t, "proc/meminfo")
	available := func(value string) string { return line(t, whole, "MemAvailable", "MemAvailable: "+value+"\n") }
	total := func(value string) string {
		_, rest, _ := strings.Cut(whole, "\n")
		return "MemTotal: " + value + "\n" + rest
	}
	inNumber := strings.Index(whole, "6144000 kB\nMapped") + 4
	testDamage(t, "proc/meminfo", func(h Host) Probe { return NewMemory(h, someMemory) }, []damage{
		{"missing", "", true, "MeminfoUnreadable"},
		{"empty", "", false, "MeminfoIncomplete"},
		{"binary", binary, false, "MeminfoGarbled"},
		{"one endless line", strings.Repeat("x", 1<<17), false, "MeminfoIncomplete"},
		{"cut off between lines", whole[:strings.Index(whole, "MemAvailable")], false, "MeminfoIncomplete"},
		{"cut off within a name", whole[:strings.Index(whole, "ailable")], false, "MeminfoGarbled"},
		{"cut off before AnonPages", whole[:strings.Index(whole, "AnonPages")], false, "MeminfoIncomplete"},
		{"cut off within AnonPages' number", whole[:inNumber], false, "MeminfoGarbled"},
		{"no MemTotal", strings.TrimPrefix(whole, "MemTotal"), false, "MeminfoIncomplete"},
		{"no MemAvailable", line(t, whole, "MemAvailable", ""), false, "MeminfoIncomplete"},
		{"no AnonPages", line(t, whole, "AnonPages", ""), false, "MeminfoIncomplete"},
		{"MemTotal 0", total("0 kB"), false, "MeminfoGarbled"},
		{"MemTotal wraps to 0", total("18014398509481984 kB"), false, "MeminfoGarbled"},
		{"words", available("plenty kB"), false, "MeminfoGarbled"},
		{"no number", available(" kB"), false, "MeminfoGarbled"},
		{"negative", available("-1 kB"), false, "MeminfoGarbled"},
		{"exponent", available("8e6 kB"), false, "MeminfoGarbled"},
		{"hexadecimal", available("0x100 kB"), false, "MeminfoGarbled"},
		{"no unit", available("8192000"), false, "MeminfoGarbled"},
		{"another unit", available("8192000 MB"), false, "MeminfoGarbled"},
		{"2^63", available("9223372036854775808 kB"), false, "MeminfoGarbled"},
		{"2^64", available("18446744073709551616 kB"), false, "MeminfoGarbled"},
		{"more available than there is", available("16384001 kB"), false, "MeminfoGarbled"},
		{"more anonymous than there is", line(t, whole, "AnonPages", "AnonPages: 16384001 kB\n"), false, "MeminfoGarbled"},
		{"neither available nor used", line(t, available("0 kB"), "AnonPages", "AnonPages: 0 kB\n"), false, "MeminfoGarbled"},
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
	o := observe(t, NewMemory(Host{Proc: "testdata/nowhere"}, someMemory))
	check(t, o, Unknown, "MeminfoUnreadable", "testdata/nowhere")
}

func BenchmarkMemoryObserve(b *testing.B) {
	m := NewMemory(Host{Proc: "/proc"}, someMemory)
	b.ReportAllocs()
	for b.Loop() {
		m.Observe(b.Context())
	}
}
