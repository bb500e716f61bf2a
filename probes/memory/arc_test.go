package memory

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/taintlet/taintlet/test/probetest"
)

// zfsText is arcstats of the host with ZFS.
func zfsText(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(memoryHost("zfs").Proc, "spl/kstat/zfs/arcstats"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParseEvictableARC(t *testing.T) {
	t.Parallel()
	// A text with these two lines, among others that end or begin alike.
	with := func(least, size string) string {
		return "13 1 0x01 147 39984 1 2\nname                            type data\nhits                            4    7\n" +
			least + "arc_c_min                       4    9\n" + size + "compressed_size                 4    8\nsize_x                          4    1\n"
	}
	const least, size = "c_min                           4    2000\n", "size                            4    5000\n"
	for _, test := range []struct {
		name, text string
		want       uint64
		err        string
	}{
		{"a real one", zfsText(t), 42 << 30, ""},
		{"short", with(least, size), 3000, ""},
		{"smaller than its least size", with(least, "size 4 1999\n"), 0, ""},
		{"at its least size", with(least, "size 4 2000\n"), 0, ""},
		{"nothing", with(least, "size 4 0\n"), 0, ""},
		{"2^64-1", with("c_min 4 0\n", "size 4 18446744073709551615\n"), 1<<64 - 1, ""},
		{"2^64", with(least, "size 4 18446744073709551616\n"), 0, "no number of bytes"},
		{"no size", with(least, ""), 0, "no line size"},
		{"no c_min", with("", size), 0, "no line c_min"},
		{"negative", with(least, "size 4 -1\n"), 0, "no number of bytes"},
		{"exponent", with(least, "size 4 5e3\n"), 0, "no number of bytes"},
		{"another type", with(least, "size 3 5000\n"), 0, "no line size"},
		{"no value", with(least, "size 4\n"), 0, "no line size"},
		{"empty", "", 0, "no line size"},
		{"no newline", strings.TrimSuffix(zfsText(t), "\n"), 0, "cut off"},
		{"cut off within the size", zfsText(t)[:strings.Index(zfsText(t), "\nsize")+40], 0, "cut off"},
		{"binary", probetest.Binary, 0, "cut off"},
	} {
		got, err := parseEvictableARC(test.text)
		if got != test.want && test.err == "" || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %d, %v, want %d, %q", test.name, got, err, test.want, test.err)
		}
	}
}

func TestARCDamage(t *testing.T) {
	t.Parallel()
	damageOptional(t, "proc/spl/kstat/zfs/arcstats", "ARCStats", map[string]string{
		"empty": "", "binary": probetest.Binary, "cut off": zfsText(t)[:100],
		"larger than the memory": "\nc_min 4 0\nsize 4 18446744073709551615\n",
	})
}

// The cache and MemAvailable count a few pages twice; together they are never
// more than the memory.
func TestARCAndAvailableAreAtMostTheMemory(t *testing.T) {
	t.Parallel()
	h := probetest.CopyOfHealthy(t)
	if err := os.MkdirAll(filepath.Join(h.Proc, "spl/kstat/zfs"), 0o700); err != nil {
		t.Fatal(err)
	}
	probetest.Write(t, h, "proc/spl/kstat/zfs/arcstats", "\nc_min 4 0\nsize 4 16777216000\n")
	s, err := readHost(t, h, sample{})
	if err != nil || s.available != 16777216000 || s.arc != 16777216000-8192000*1024 {
		t.Errorf("%+v, %v", s, err)
	}
}

func FuzzParseEvictableARC(f *testing.F) {
	f.Add(zfsText(f))
	f.Add("\nc_min 4 0\nsize 4 1\n")
	f.Add(probetest.Binary)
	f.Fuzz(func(t *testing.T, text string) {
		evictable, err := parseEvictableARC(text)
		if err == nil && (!strings.HasSuffix(text, "\n") || evictable > 0 && !strings.Contains(text, "\nsize ")) {
			t.Errorf("%q has %d", text, evictable)
		}
	})
}
